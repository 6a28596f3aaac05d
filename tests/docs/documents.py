"""The documents, and the blocks that they show."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.exists()]


def blocks(text: str, info: str) -> Iterator[tuple[int, str]]:
    """Yield the first line's number and the text of each fenced block with exactly this info string."""
    for found in re.finditer(rf"^```{info}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start(1)), found[1]


def files(text: str) -> dict[str, str]:
    """Return the files that a document shows, by name: blocks of JSON or TOML whose info string goes on with a name."""
    found = re.finditer(r"^```(?:json|toml) (\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return {each[1]: each[2] for each in found}


def with_any(info: str) -> list[Path]:
    """Return the documents that hold at least one such block."""
    return [path for path in DOCUMENTS if any(blocks(path.read_text(encoding="utf-8"), info))]


def name(path: Path) -> str:
    """Name a document as a reader would."""
    return str(path.relative_to(ROOT))
