"""Measures of the language of the source: names of modules and functions, words of docstrings."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.tidy import repository

# Participles that do not end with "ed".
_IRREGULAR = """
    begun born bought bound broken brought built caught chosen dealt done drawn driven eaten fallen felt forgotten
    found given gone grown heard held hidden hung kept known laid led left lent lost made meant met paid rebuilt
    risen said seen sent shown shut sold spent spoken stood stuck sung sunk swept taken taught thought thrown told
    torn understood undone unkept withdrawn won worn written
"""
# Words in "ed" that are no participles.
_PLAIN = frozenset(
    ["bed", "embed", "exceed", "fed", "feed", "heed", "need", "proceed", "red", "seed", "shed", "speed", "succeed"]
)
RELATIVE = frozenset(["that", "what", "where", "which", "who", "whom", "whose"])
SPEECH = frozenset(
    ["ask", "asked", "asking", "asks", "said", "say", "saying", "says", "tell", "telling", "tells", "told"]
)
# One file a rule, resource, kind of operation, schema, command or database: names repeat in these folders. The
# names of compat are Nova's.
REPEATING = (
    *("filters", "weighers", "handlers", "steps", "schemas", "commands", "migrations", "writes"),
    *("compat", "sqlite", "postgresql"),
)
_APIS = frozenset({"routes", "application"})  # once in each API


def sources() -> list[Path]:
    """Return all modules of the product, relative to its package."""
    found = (path.relative_to(repository.SOURCE) for path in sorted(repository.SOURCE.rglob("*.py")))
    return [path for path in found if "versions" not in path.parts]


def is_participle(name: str) -> bool:
    """Return whether a name begins with a past participle."""
    word = name.strip("_").split("_")[0].lower()
    return word in _IRREGULAR.split() or (word.endswith("ed") and word not in _PLAIN)


def participles() -> list[str]:
    """Return the functions and methods that are named by a participle, each with its module."""
    return [
        f"{path}:{node.name}"
        for path in sources()
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name)
    ]


def bare_modules() -> list[str]:
    """Return the modules that are named by one gerund or participle alone."""
    names = ((path, path.stem) for path in sources() if not path.stem.startswith("__"))
    return [
        str(path)
        for path, name in names
        if "_" not in name and (is_participle(name) or (name.endswith("ing") and name not in {"interning", "standing"}))
    ]


def repeated_modules() -> dict[str, list[str]]:
    """Return the base names that several modules have where names are to be unique."""
    found: dict[str, list[str]] = {}
    for path in sources():
        repeats = any(part in REPEATING for part in path.parts) or "drivers" in path.parts
        if not repeats and not path.stem.startswith("__") and path.stem not in _APIS:
            found.setdefault(path.stem, []).append(str(path))
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def words_per_hundred(words: frozenset[str]) -> float:
    """Return how many of some words there are in a hundred words of docstrings."""
    counts = Counter(word for text in docstrings() for word in re.findall(r"[a-z']+", text.lower()))
    return 100 * sum(counts[word] for word in words) / counts.total()


def docstrings() -> Iterator[str]:
    """Yield all docstrings of the product."""
    for path in sources():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""


def folder_sizes() -> dict[str, int]:
    """Return the number of modules in each folder, those of rules, handlers and migrations aside."""
    aside = {"filters", "weighers", "handlers", "versions", "commands", "prefilters", "compat", "extra_specs"}
    found = Counter(str(path.parent) for path in sources() if path.stem != "__init__" and path.parent.name not in aside)
    return dict(found)


def _tree(path: Path) -> ast.Module:
    return repository.tree((repository.SOURCE / path).relative_to(repository.ROOT))
