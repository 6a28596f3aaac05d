"""Texts of refusals: one line with numbers, and its comparable form without them."""

import re
from collections.abc import Sequence

from roost.model.evidence.decision import Decision, Stage
from roost.model.evidence.predicates import count_hosts, plural_predicate

SEARCH = "search"  # the rule name of checks without a rule
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
    parts = ", ".join(count_hosts(stage.before - stage.after, stage.reason) for stage in refusing)
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
    return ", ".join(sorted({_bare_part(part) for part in parts})) or "no reason given"


def _bare_part(part: str) -> str:
    bare = _HOST_COUNT.sub("", part)
    return plural_predicate(bare) if part.startswith("1 ") else bare


# The start of each reason of the search, and its class.
_CLASSES = (
    ("lack trait ", "trait"),
    ("have forbidden trait ", "trait"),
    ("offer no ", "class"),
    ("are not in the requested tree", "tree"),
    ("are not in ", "aggregate"),
    ("are in ", "aggregate"),
    ("lack ", "amount"),
)


def classify_refusal(decision: Decision) -> tuple[str, str]:
    """Return the rule that rejected the most hosts, and the class of its reason.

    Returns:
        The rule is ``none`` if no rule rejected a host. The class is amount, trait, aggregate, class, tree, group or
        rule; without a rule it is no_hosts or conflict.

    >>> stages = [Stage("search", 10, 4, "lack 2,048 MiB memory or more"), Stage("compute", 4, 0, "are down")]
    >>> classify_refusal(Decision(uuid="", decided_at_s=0.0, outcome="refused", request_id=0, stages=stages))
    ('search', 'amount')
    """
    stages = decision.stages
    worst = max(stages, key=lambda stage: stage.before - stage.after, default=None)
    if worst is None or worst.before == worst.after:
        has_hosts = bool(stages) and stages[0].before > 0
        return "none", "conflict" if has_hosts else "no_hosts"
    return worst.rule, classify_reason(worst)


def classify_reason(stage: Stage) -> str:
    """Return the class of a stage's reason."""
    if stage.rule != SEARCH:
        return "rule"
    if " or more on " in stage.reason:  # A resource group: amounts and labels that one provider must have together.
        return "group"
    return next((name for start, name in _CLASSES if stage.reason.startswith(start)), "group")
