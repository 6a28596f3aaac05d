"""JSON and YAML. Answers of the API get each time as text, beside its number."""

from typing import Any

import msgspec

from roost.cli.text import terminal
from roost.cli.text.plain_text import escape_json, format_iso_time

# A marker of times in JSON. Without it, the answer is printed as it is.
_TIME_MARK = b'_s":'


def to_json(document: object, *, is_indented: bool | None = None) -> str:
    """Return a document as JSON, without a final newline.

    Args:
        is_indented: whether it has several lines; None: only on a terminal.
    """
    body = msgspec.json.encode(document)
    if _TIME_MARK in body and not isinstance(document, msgspec.Struct):
        body = msgspec.json.encode(add_times(msgspec.to_builtins(document)))
    if is_indented is None:
        is_indented = terminal.is_terminal()
    return escape_json(msgspec.json.format(body, indent=2) if is_indented else body)


def to_yaml(document: object) -> str:
    """Return a document as YAML, without its final newline."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # The second one is much slower.
    options = {"Dumper": dumper, "sort_keys": False, "width": 2**31 - 1, "default_flow_style": False}
    content = msgspec.to_builtins(document)
    content = content if isinstance(document, msgspec.Struct) else add_times(content)
    text: str = yaml.dump(content, allow_unicode=True, **options)
    if not text.replace("\n", "").isprintable():  # Only this option makes the library escape all such letters.
        text = yaml.dump(content, allow_unicode=False, **options)
    return text.removesuffix("\n").removesuffix("\n...")


def add_times(value: Any) -> Any:
    """Return a JSON value in which each ``NAME_at_s`` and ``time_s`` has a neighbour without ``_s``, in ISO 8601.

    >>> add_times({"heard_at_s": 0.0})
    {'heard_at_s': 0.0, 'heard_at': '1970-01-01T00:00:00Z'}
    """
    if isinstance(value, list | tuple):
        return [add_times(each) for each in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for name, each in value.items():
        result[name] = add_times(each)
        text = name.removesuffix("_s")
        if (name.endswith("_at_s") or name == "time_s") and text not in value:
            is_number = isinstance(each, int | float) and not isinstance(each, bool)
            if is_number or each is None:
                result[text] = format_iso_time(each) if is_number else None
    return result
