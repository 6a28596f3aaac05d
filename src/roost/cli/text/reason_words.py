"""Reasons of refusals in the words of operators. Evidence and the API keep the words of Placement."""

import re
from collections.abc import Iterable

from roost.model.evidence.predicates import count_hosts

_ZONE_RULE = "map_az_to_placement_aggregate"
# A reason, in the plural or for one host, and its words for operators.
_WORDS = (
    (r"(are|is) not in the requested tree\b", r"\1 not the requested host"),
    (r"have forbidden trait COMPUTE_STATUS_DISABLED\b", "are disabled"),
    (r"has forbidden trait COMPUTE_STATUS_DISABLED\b", "is disabled"),
)
_MEMBERS = r"(are|is) not in the requested aggregates\b"
_AVOIDED = (
    r"(are|is) in a forbidden aggregate\b"  # The default zone is all hosts outside the aggregates of other zones.
)


def reason_words(reason: str, *, rule: str = "", zone: str | None = "") -> str:
    """Return a reason, or a text with reasons, in the words of operators.

    Args:
        reason: in the plural, or for one host.
        rule: the rule that refused the hosts; empty: unknown.
        zone: requested availability zone; empty: unknown.

    >>> reason_words("are not in the requested aggregates", rule="map_az_to_placement_aggregate", zone="east")
    'are outside availability zone east'
    >>> reason_words("2 hosts: 1 is not in the requested tree, 1 has forbidden trait COMPUTE_STATUS_DISABLED")
    '2 hosts: 1 is not the requested host, 1 is disabled'
    """
    for pattern, words in _WORDS:
        reason = re.sub(pattern, words, reason)
    if rule == _ZONE_RULE:
        place = f"availability zone {zone}" if zone else "the requested availability zone"
        return re.sub(f"{_MEMBERS}|{_AVOIDED}", lambda match: f"{match[1] or match[2]} outside {place}", reason)
    if rule:
        return reason
    return re.sub(_MEMBERS, r"\1 outside the requested zone or aggregates", reason)


def refusal_words(text: str, stages: Iterable[tuple[str, int, str]], *, zone: str | None = "") -> str:
    """Return the line of a refusal in the words of operators.

    Args:
        text: the line, with all reasons.
        stages: rule, number of refused hosts and reason of each stage.
        zone: as for ``reason_words``.
    """
    for rule, count, reason in stages:
        if count:
            words = reason_words(reason, rule=rule, zone=zone)
            text = text.replace(count_hosts(count, reason), count_hosts(count, words), 1)
    return reason_words(text)
