"""The documents of the project, and their code blocks."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.exists()]


def blocks(text: str, info: str) -> Iterator[tuple[int, str]]:
    """Yield the first line number and the text of each fenced block with exactly this info string."""
    for match in re.finditer(rf"^```{info}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, match.start(1)), match[1]


def files(text: str) -> dict[str, str]:
    """Return the files in a document by name: JSON and TOML blocks with a file name in their info string."""
    matches = re.finditer(r"^```(?:json|toml) (\S+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return {each[1]: each[2] for each in matches}


def documents_with(info: str) -> list[Path]:
    """Return the documents with at least one such block."""
    return [path for path in DOCUMENTS if any(blocks(path.read_text(encoding="utf-8"), info))]


def name(path: Path) -> str:
    """Return the path of a document, relative to the root."""
    return str(path.relative_to(ROOT))
