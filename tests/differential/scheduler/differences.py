"""Differences that are meant: each with its reason, and the condition under which it excuses a fault."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference that is meant."""

    name: str
    reason: str
    excuses: Callable[[Any, Json], bool]  # a fault and its whole pair


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        name="an error refuses the host",
        reason="text where a number is wanted ends the whole request there; here it refuses its host and no other",
        excuses=lambda fault, pair: fault.what == "passes" and fault.theirs == "ValueError" and fault.ours is False,
    ),
)
