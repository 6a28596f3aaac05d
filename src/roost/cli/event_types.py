"""The types of events, to check ``--type``."""

import difflib
from collections.abc import Iterator, Sequence
from typing import get_args

from roost.api.changes.change_note import KINDS
from roost.errors import BadRequest
from roost.model.work.operation import Kind

_DECISIONS = ("scheduler.select_destinations.start", "scheduler.select_destinations.end")
_OLDER_DECISIONS = ("scheduler.run_instance.start", "scheduler.run_instance.end")
_AGENTS = ("agent.registered", "agent.ready", "agent.gone", "service.disabled")


def list_types() -> set[str]:
    """Return the known types of events; one that ends with a dot is the beginning of several."""
    kinds = set(_names(Kind))
    return {
        *_DECISIONS,
        *_OLDER_DECISIONS,
        *_AGENTS,
        *KINDS,
        *(f"instance.{kind}." for kind in kinds),
        *(f"operation.{kind}." for kind in kinds),
    }


def check_types(types: Sequence[str]) -> None:
    """Refuse prefixes that match no event.

    Raises:
        BadRequest: a prefix is unknown.
    """
    known = list_types()
    for text in types:
        if not any(each.startswith(text) or (each.endswith(".") and text.startswith(each)) for each in known):
            close = difflib.get_close_matches(text, known, n=1)
            families = ", ".join(sorted({each.partition(".")[0] for each in known}))
            hint = f"did you mean {close[0]!r}?" if close else f"types begin with {families}"
            raise BadRequest(f"--type: no event has the type {text!r}; {hint}")


def _names(alias: object) -> Iterator[str]:
    """Yield the values of a Literal; it may contain other ones."""
    for each in get_args(alias):
        yield from [each] if isinstance(each, str) else _names(each)
