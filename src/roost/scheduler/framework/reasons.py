"""Texts of refusals: one line with numbers, and its comparable form without them."""

import re
from collections.abc import Sequence

from roost.model.evidence.decision import Stage

_HOSTS_TOTAL = re.compile(r"\A[0-9,]+ of [0-9,]+ hosts?(: |\Z)")
_HOST_COUNT = re.compile(r"\A[0-9,]+ (?=\D)")
_ROOM = re.compile(r"; room for [0-9,]+ of [0-9,]+ instances\Z")
# A part may contain commas; the next part starts with a number of hosts.
_PART_END = re.compile(r", (?=[0-9,]+ \D)")
_EMPTY_FLEET = "0 of 0 hosts: no host is known yet"


def refusal_text(stages: Sequence[Stage], *, found: int = 0, requested: int = 1) -> str:
    """Return one line with the number of rejected hosts per reason, most common first.

    Args:
        stages: one per check, in order.
        found: number of instances with a host, before the first instance without one.
        requested: requested instances.

    >>> refusal_text([Stage("search", 10, 4, "lack 2,048 MiB memory or more"), Stage("compute", 4, 0, "are down")])
    '0 of 10 hosts: 6 lack 2,048 MiB memory or more, 4 are down'
    """
    hosts = stages[0].before if stages else 0
    refusing = sorted(
        (stage for stage in stages if stage.before > stage.after), key=lambda stage: stage.after - stage.before
    )
    parts = ", ".join(f"{stage.before - stage.after:,} {stage.reason}" for stage in refusing)
    text = _EMPTY_FLEET
    if hosts:
        text = f"{stages[-1].after:,} of {hosts:,} hosts" + (f": {parts}" if parts else "")
    return text if requested == 1 else f"{text}; room for {found:,} of {requested:,} instances"


def bare_reason(line: str) -> str:
    """Return a refusal's line without its numbers of hosts and instances, its parts in alphabetical order.

    >>> bare_reason("0 of 10,000 hosts: 6,120 lack 2,048 MiB memory or more, 3,880 lack trait CUSTOM_A")
    'lack 2,048 MiB memory or more, lack trait CUSTOM_A'
    """
    parts = _PART_END.split(_HOSTS_TOTAL.sub("", _ROOM.sub("", line.strip())))
    return ", ".join(sorted({_HOST_COUNT.sub("", part) for part in parts})) or "no reason given"
