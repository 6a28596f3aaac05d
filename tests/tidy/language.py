"""Measures of the language in the source: names of modules and functions, and words in docstrings."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.tidy import repository

# Participles without the ending "ed".
_IRREGULAR = """
    begun born bought bound broken brought built caught chosen dealt done drawn driven eaten fallen felt forgotten
    found given gone grown heard held hidden hung kept known laid led left lent lost made meant met paid rebuilt
    risen said seen sent shown shut sold spent spoken stood stuck sung sunk swept taken taught thought thrown told
    torn understood undone unkept withdrawn won worn written
"""
# Words that end with "ed" and are not participles.
_PLAIN = frozenset(
    ["bed", "embed", "exceed", "fed", "feed", "heed", "need", "proceed", "red", "seed", "shed", "speed", "succeed"]
)
# Noun phrases: a participle before its noun.
_NOUN_PHRASES = frozenset(
    [
        "cached_scores",
        "dedicated_cpus",
        "elapsed_s",
        "reserved_cpus",
        "saved_images",
        "staged_count",
        "unsupported_upgrade_warning",
    ]
)
# Names that other projects gave.
_FOREIGN = frozenset(["elevated", "packed_virtqueue_filter", "routed_networks_filter", "satisfied_by"])
RELATIVE = frozenset(["that", "what", "where", "which", "who", "whom", "whose"])
SPEECH = frozenset(
    ["ask", "asked", "asking", "asks", "said", "say", "saying", "says", "tell", "telling", "tells", "told"]
)
# Base names may repeat in these folders of rules, resources, commands and databases. Compat has Nova's names.
REPEATING = (
    *("filters", "weighers", "handlers", "steps", "schemas", "commands", "migrations", "writes"),
    *("compat", "sqlite", "postgresql", "mariadb"),
)
_APIS = frozenset({"routes", "application"})  # one in each API


def sources() -> list[Path]:
    """Return all modules of the product, relative to its package."""
    paths = (path.relative_to(repository.SOURCE) for path in sorted(repository.SOURCE.rglob("*.py")))
    return [path for path in paths if "versions" not in path.parts]


def is_participle(name: str) -> bool:
    """Return whether a name begins with a past participle."""
    if name.strip("_") in _NOUN_PHRASES | _FOREIGN:
        return False
    word = name.strip("_").split("_")[0].lower()
    return word in _IRREGULAR.split() or (word.endswith("ed") and word not in _PLAIN)


def participles() -> list[str]:
    """Return all functions and methods named by a participle, with their modules."""
    return [
        f"{path}:{node.name}"
        for path in sources()
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name)
    ]


def bare_modules() -> list[str]:
    """Return the modules named by a single gerund or participle."""
    names = ((path, path.stem) for path in sources() if not path.stem.startswith("__"))
    return [
        str(path)
        for path, name in names
        if "_" not in name and (is_participle(name) or (name.endswith("ing") and name not in {"interning", "standing"}))
    ]


def repeated_modules() -> dict[str, list[str]]:
    """Return the base names of several modules, outside folders with repeated names."""
    paths_by_name: dict[str, list[str]] = {}
    for path in sources():
        repeats = any(part in REPEATING for part in path.parts) or "drivers" in path.parts
        if not repeats and not path.stem.startswith("__") and path.stem not in _APIS:
            paths_by_name.setdefault(path.stem, []).append(str(path))
    return {name: paths for name, paths in paths_by_name.items() if len(paths) > 1}


def words_per_hundred(words: frozenset[str]) -> float:
    """Return the number of these words per hundred docstring words."""
    counts = Counter(word for text in docstrings() for word in re.findall(r"[a-z']+", text.lower()))
    return 100 * sum(counts[word] for word in words) / counts.total()


def docstrings() -> Iterator[str]:
    """Yield all docstrings of the product."""
    for path in sources():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield ast.get_docstring(node) or ""


def folder_sizes() -> dict[str, int]:
    """Return the number of modules in each folder, except folders of rules, handlers and migrations."""
    aside = {"filters", "weighers", "handlers", "versions", "commands", "prefilters", "compat", "extra_specs"}
    counts = Counter(
        str(path.parent) for path in sources() if path.stem != "__init__" and path.parent.name not in aside
    )
    return dict(counts)


def _tree(path: Path) -> ast.Module:
    return repository.tree((repository.SOURCE / path).relative_to(repository.ROOT))
