"""Selections for lists: the fields of their entries, and patterns for names."""

from collections.abc import Sequence

import msgspec

from roost.api.http import Response
from roost.api.v1.call import JSON
from roost.api.v1.wire.decode_body import field_problem

_ANY = "*"
_encoder = msgspec.json.Encoder()


def fields_of(text: str, kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the selected fields of entries.

    Args:
        text: names separated by commas; empty: all fields.

    Raises:
        Problem: 400, a name is unknown.
    """
    known = kind.__struct_fields__
    names = text.split(",") if text else known
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise field_problem("?fields", f"{unknown[:70]!r} is not a field: choose from {', '.join(known)}")
    return tuple(names)


def fields_response(
    noun: str, entries: Sequence[msgspec.Struct], following: str | None, *, fields: Sequence[str]
) -> Response:
    """Return a page with the selected fields of its entries.

    Args:
        noun: name of the list in the page.
        following: cursor of the next page; None: this is the last.
    """
    shown = [{name: getattr(entry, name) for name in fields} for entry in entries]
    return Response(body=_encoder.encode({noun: shown, "next": following}), headers={"content-type": JSON})


class NamePattern:
    """A pattern for names: a whole name, or the start of names and ``*``; an empty text accepts every name.

    Args:
        text: the name or pattern.
        is_exact: whether upper and lower case differ.
    """

    def __init__(self, text: str, *, is_exact: bool) -> None:
        self._is_exact = is_exact
        start = text.removesuffix(_ANY)
        self._is_start, self._text = not text or start != text, self._form(start)

    def accepts(self, name: str) -> bool:
        """Return whether a name matches."""
        form = self._form(name)
        return form.startswith(self._text) if self._is_start else form == self._text

    def _form(self, name: str) -> str:
        return name if self._is_exact else name.lower()
