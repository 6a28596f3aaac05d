"""Where in a document an error is, where its path leads through objects whose keys are anybody's."""

import re
from typing import Any

import msgspec

# What reading a document raises that cannot be read to its end, or written again.
_UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError, OverflowError)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")  # the last one stands for any key


def locate_error(text: str, body: bytes, kind: Any) -> str:
    """Return the text of a validation error with the keys of the document in its path.

    It is looked for in the document as it is read without a type. The text stays as it is where that cannot be done, as
    the rest of the document is no JSON, or reads as another document, as a key is there twice.

    Args:
        text: of the error, as msgspec says it.
        body: the document, JSON.
        kind: the type that it is not of.

    >>> placed("Expected `str`, got `int` - at `$[...]`", b'{"a": "x", "b": 1}', dict[str, str])
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
    """Return a path with keys; None: the document has not this error."""
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
    """Return the first key of an object for which a document is wrong, and leave no other in it."""
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
