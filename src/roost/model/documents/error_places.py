"""Locates errors in documents with arbitrary keys."""

import re
from typing import Any

import msgspec

# Errors of unreadable documents.
_UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError, OverflowError)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")  # the last one stands for any key


def locate_error(text: str, body: bytes, kind: Any) -> str:
    """Return the text of a validation error with the actual keys in its path.

    The error is located in the untyped document. The text stays unchanged if that fails: the rest of the document is
    not JSON, or a key occurs twice.

    Args:
        text: of msgspec's error.
        body: the document, JSON.
        kind: the expected type.

    >>> locate_error("Expected `str`, got `int` - at `$[...]`", b'{"a": "x", "b": 1}', dict[str, str])
    "Expected `str`, got `int` - at `$['b']`"
    """
    problem, at, path = text.partition(" - at `$")
    if "[...]" not in path:
        return text
    try:
        told = _path(text, path, msgspec.json.decode(body), kind=kind)
    except _UNREADABLE:
        return text
    return text if told is None else f"{problem}{at}{told}`"


def _path(text: str, path: str, document: Any, *, kind: Any) -> str | None:
    """Return a path with keys; None: the document does not have this error."""
    if _problem(document, kind) != text:
        return None
    node, told = document, ""
    for step in _STEP.finditer(path):
        if step[1] is not None:
            node, told = node[step[1]], told + step[0]
        elif step[2] is not None:
            node, told = node[int(step[2])], told + step[0]
        else:
            key = _wrong_key(node, lambda: _problem(document, kind) == text)
            node, told = node[key], f"{told}[{key!r}]"
    return told


def _wrong_key(node: dict[str, Any], is_wrong: Any) -> str:
    """Find the first key of an object with the error, and remove all others from it."""
    left = list(node.items())
    while len(left) > 1:
        half = len(left) // 2
        node.clear()
        node.update(left[:half])
        left = left[:half] if is_wrong() else left[half:]
    node.clear()
    node.update(left)
    return left[0][0]


def _problem(document: object, kind: Any) -> str:
    try:
        msgspec.json.decode(msgspec.json.encode(document), type=kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""
