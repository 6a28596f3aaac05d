"""Locates errors in documents with arbitrary keys."""

import re
from collections.abc import Callable
from typing import Any

import msgspec

# Exceptions for documents that cannot be decoded or encoded.
_UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError, OverflowError)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")  # ``[...]`` stands for any key of an object


def locate_error(text: str, body: bytes, kind: Any) -> str:
    """Return the text of a validation error with the actual keys in its path.

    The keys are found by a search in the decoded document. If the search fails, the text is returned unchanged: the
    document is not valid JSON after the error, or an object in it repeats a key.

    Args:
        text: the message of msgspec's error.
        body: the document, in JSON.
        kind: the expected type.

    >>> locate_error("Expected `str`, got `int` - at `$[...]`", b'{"a": "x", "b": 1}', dict[str, str])
    "Expected `str`, got `int` - at `$['b']`"
    """
    problem, at, path = text.partition(" - at `$")
    if "[...]" not in path:
        return text
    try:
        keyed_path = _path(text, path, msgspec.json.decode(body), kind=kind)
    except _UNREADABLE:
        return text
    return text if keyed_path is None else f"{problem}{at}{keyed_path}`"


def _path(text: str, path: str, document: Any, *, kind: Any) -> str | None:
    """Return the path with its keys filled in, or None if the decoded document does not cause this error."""
    if _problem(document, kind) != text:
        return None
    node, keyed_path = document, ""
    for step in _STEP.finditer(path):
        if step[1] is not None:
            node, keyed_path = node[step[1]], keyed_path + step[0]
        elif step[2] is not None:
            node, keyed_path = node[int(step[2])], keyed_path + step[0]
        else:
            key = _find_wrong_key(node, lambda: _problem(document, kind) == text)
            node, keyed_path = node[key], f"{keyed_path}[{key!r}]"
    return keyed_path


def _find_wrong_key(node: dict[str, Any], is_wrong: Callable[[], bool]) -> str:
    """Return the first key of an object whose value causes the error; remove all other keys from the object."""
    entries = list(node.items())
    while len(entries) > 1:
        half = len(entries) // 2
        node.clear()
        node.update(entries[:half])
        entries = entries[:half] if is_wrong() else entries[half:]
    node.clear()
    node.update(entries)
    return entries[0][0]


def _problem(document: object, kind: Any) -> str:
    try:
        msgspec.json.decode(msgspec.json.encode(document), type=kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""
