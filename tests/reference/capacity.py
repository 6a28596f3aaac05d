"""How many more fit, once more: really decided on a fork, one at a time, until one is refused."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import msgspec

from roost.app import Roost
from roost.model.capacity import Shortage
from roost.model.decision import Decision
from roost.model.request import Request

Refused = Counter[tuple[str, str]]  # rule and reason -> hosts


class Filled(NamedTuple):
    """What came of it."""

    count: int
    before: Refused  # at the first decision
    after: Refused  # at the one that was refused


def filled(roost: Roost, request: Request, *, on: Collection[str] | None = None) -> Filled:
    """Place one after the other on some hosts, or all."""
    fork = roost.fork()
    others = () if on is None else tuple(name for name in roost.state.hosts.names if name not in on)
    one = msgspec.structs.replace(request, count=1, instance_uuids=(), ignore_hosts=(*request.ignore_hosts, *others))
    first = decision = fork.decide(one)
    count = 0
    while decision.is_granted:
        count += 1
        decision = fork.decide(one)
    return Filled(count, refused(first), refused(decision))


def refused(decision: Decision) -> Refused:
    """Give the hosts that each rule refused."""
    found: Refused = Counter()
    for stage in decision.stages:
        if stage.before > stage.after:
            found[stage.rule, stage.reason] += stage.before - stage.after
    return found


def by_rule(shortages: list[Shortage]) -> Refused:
    """Give the same of a capacity."""
    found: Refused = Counter()
    for each in shortages:
        found[each.rule, each.reason] += each.hosts
    return found
