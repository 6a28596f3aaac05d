"""Names in the product: parameters, variables and attributes in words that are no terms of the field."""

import ast
import re
from collections.abc import Iterator

from tests.tidy import language, repository

# Pronouns, participles and verbs of speech where a noun of the field exists.
DIALECT = frozenset(
    [
        "told",
        "untold",
        "tell",
        "tells",
        "teller",
        "tellers",
        "asked",
        "asking",
        "said",
        "saying",
        "heed",
        "heeds",
        "hearing",
        "heard",
        "hear",
        "crew",
        "patience",
        "whoever",
        "nobody",
        "somebody",
        "meant",
        "lent",
        "worn",
        "wish",
        "wishes",
        "came",
        "come",
        "comes",
        "goes",
    ]
)
# Names of others: Nova's, and columns and fields that are stored or on the wire.
_KEPT = frozenset({"heard_at_s", "told", "came_from", "NOBODY"})


def definitions() -> Iterator[str]:
    """Yield each name that the product defines in such words, with its module."""
    for path in language.sources():
        for node in ast.walk(repository.tree((repository.SOURCE / path).relative_to(repository.ROOT))):
            yield from (f"{path}:{name}" for name in _defined(node) if name not in _KEPT and words(name) & DIALECT)


def words(name: str) -> frozenset[str]:
    """Return the words of a name, in small letters."""
    return frozenset(re.split(r"_+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()))


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
