"""The differences between two clouds."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from tests.bed.combinations import Combination
from tests.bed.loads import classify
from tests.bed.records import Outcome, Record

Kind = Literal["host", "meant", "other"]
OVERCOMMIT = "upstream Placement grants a unit twice if two claims meet"
_PARTS = ("status", "fault", "holdings", "facts")
ABSENT = "absent"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Two observations that are not equal."""

    operation: str
    label: str
    part: str
    reference: Any
    subject: Any
    kind: Kind  # a choice among correct hosts, a difference with a known reason, or another one
    reason: str = ""


def find_differences(reference: Record, subject: Record) -> list[Difference]:
    """Return all differences, in the order of the operations."""
    found: list[Difference] = []
    for operation in _union(reference.outcomes, subject.outcomes):
        ours, theirs = subject.outcomes.get(operation, {}), reference.outcomes.get(operation, {})
        for label in _union(theirs, ours):
            if label in ours and label in theirs:
                parts = _compare(theirs[label], ours[label])
            else:
                present = [ABSENT if label not in each else "present" for each in (theirs, ours)]
                parts = iter([("presence", present[0], present[1])])
            for part, one, other in parts:
                pair = (theirs.get(label), ours.get(label))
                kind, reason = _classify(part, pair, (reference.combination, subject.combination))
                found.append(
                    Difference(
                        operation=operation,
                        label=label,
                        part=part,
                        reference=one,
                        subject=other,
                        kind=kind,
                        reason=reason,
                    )
                )
    return found


def count_reasons(differences: Iterable[Difference]) -> dict[str, int]:
    """Return the number of different choices of hosts, by reason."""
    return dict(Counter(each.reason for each in differences if each.kind == "host"))


def is_overcommit(facts: Any) -> bool:
    """Return whether more was granted than there was room for."""
    return isinstance(facts, dict) and {"granted", "room"} <= facts.keys() and facts["granted"] > facts["room"]


def _compare(reference: Outcome, subject: Outcome) -> Iterator[tuple[str, Any, Any]]:
    for part in _PARTS:
        one, other = getattr(reference, part), getattr(subject, part)
        if one != other:
            yield part, msgspec.to_builtins(one), msgspec.to_builtins(other)
    # A server without a host differs in its status already.
    if reference.host != subject.host and reference.host and subject.host:
        yield "host", reference.host, subject.host


def _classify(
    part: str, pair: tuple[Outcome | None, Outcome | None], combinations: tuple[Combination, Combination]
) -> tuple[Kind, str]:
    reference, subject = pair
    if reference is None or subject is None:
        return "other", ""
    if part == "host" and reference.is_host_free and subject.is_host_free:
        return "host", classify(reference, subject)
    if part == "facts" and _is_overcommit_of_upstream((reference, subject), combinations):
        return "meant", OVERCOMMIT
    return "other", ""


def _is_overcommit_of_upstream(pair: tuple[Outcome, Outcome], combinations: tuple[Combination, Combination]) -> bool:
    """Return whether an upstream Placement granted too much, and each other Placement exactly as much as it had."""
    facts: list[Any] = [outcome.facts for outcome in pair]
    if not any(map(is_overcommit, facts)) or not all(isinstance(each, dict) for each in facts):
        return False
    is_same_question = len({(each.get("room"), each.get("boots")) for each in facts}) == 1
    return is_same_question and all(
        each["granted"] == each["room"] or (is_overcommit(each) and combination.placement == "upstream")
        for each, combination in zip(facts, combinations, strict=True)
    )


def _union(one: Iterable[str], other: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*one, *other]))
