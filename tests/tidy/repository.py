"""The files of this repository, and the contents of its modules, for the tidy tests."""

import ast
import functools
import importlib
import importlib.util
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "roost"


@functools.cache
def files() -> tuple[Path, ...]:
    """Return every file that is tracked or could be committed, relative to the root."""
    # Untracked files count too, so that a local check gives the same result as CI.
    # Also works in a clone owned by another user.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (Path(name) for name in sorted(listed.split("\0")) if name)
    return tuple(path for path in paths if (ROOT / path).is_file())


def python_files() -> tuple[Path, ...]:
    """Return every Python file of the repository, relative to the root."""
    return tuple(path for path in files() if path.suffix == ".py")


def read(path: Path) -> str:
    """Return the text of a file; empty for a binary file."""
    try:
        return (ROOT / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def tree(path: Path) -> ast.Module:
    """Parse a Python file of the repository."""
    return ast.parse(read(path), filename=str(path))


def members(module: str) -> dict[str, object]:
    """Import a module of the product and return its names; empty if the module does not exist."""
    return dict(vars(importlib.import_module(module))) if _exists(module) else {}


def rules(kind: str) -> list[str]:
    """Return the names of all rules of one kind, ``filters`` or ``weighers``: the names of their files."""
    stems = sorted(path.stem for path in (SOURCE / "scheduler" / kind).glob("[!_]*.py"))
    assert stems, f"no rules in {kind}"
    return stems


@functools.cache
def headings() -> tuple[str, ...]:
    """Return the text of every heading in the documents, without backquotes."""
    return tuple(text for path in files() if path.parts[0] == "docs" and path.suffix == ".md" for text in _titles(path))


def _exists(module: str) -> bool:
    package = module.rpartition(".")[0]
    return (not package or _exists(package)) and importlib.util.find_spec(module) is not None


def _titles(path: Path) -> Iterator[str]:
    is_code = False
    for line in read(path).splitlines():
        is_code ^= line.lstrip().startswith("```")
        # In a block, such a line is a comment.
        if not is_code and (title := re.match(r"#{1,6}\s+(.+)", line)):
            yield title[1].replace("`", "").strip()
