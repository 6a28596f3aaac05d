"""How many more fit, once more: really decided on a fork, one at a time, until one is refused."""

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

import msgspec
import pytest

from roost.app import Roost
from roost.errors import RoostError
from roost.model.evidence.capacity import Shortage
from roost.model.evidence.decision import Decision
from roost.model.request import Request
from tests.support.fleets.worlds import digest

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
    """Return the hosts that each rule refused."""
    found: Refused = Counter()
    for stage in decision.stages:
        if stage.before > stage.after:
            found[stage.rule, stage.reason] += stage.before - stage.after
    return found


def by_rule(shortages: list[Shortage]) -> Refused:
    """Return the same of a capacity."""
    found: Refused = Counter()
    for each in shortages:
        found[each.rule, each.reason] += each.hosts
    return found


def hosts_in(roost: Roost, *, zone: str | None = None, aggregate: str | None = None) -> set[str]:
    """Return the hosts whose root is in an aggregate, or in any of a zone; the default zone is the rest."""
    state = roost.state
    by_number = {number: state.aggregates.name_of(number) for number in state.metadata}
    wanted, others = set(), set()
    for number, metadata in state.metadata.items():
        of_zone = metadata.get("availability_zone")
        if by_number[number] == aggregate or (zone is not None and of_zone == zone):
            wanted.add(number)
        if of_zone is not None:
            others.add(number)
    roots = state.hosts.provider_row.view.tolist()
    labels = {name: state.membership.labels_of(row) for name, row in zip(state.hosts.names, roots, strict=True)}
    if zone is not None and not wanted:
        return {name for name, worn in labels.items() if not worn & others}
    return {name for name, worn in labels.items() if worn & wanted}


def compare(roost: Roost, request: Request) -> None:
    """Hold a capacity to what is really placed."""
    before = digest(roost.state)
    try:
        found = roost.capacity(request)
    except RoostError as error:
        with pytest.raises(type(error)):
            roost.decide(request, dry_run=True)
        return
    assert digest(roost.state) == before
    whole = filled(roost, request)
    assert found.count == whole.count
    assert by_rule(found.unfit) == whole.before
    assert by_rule(found.exhausted) <= whole.after
    assert found.takers == found.hosts - whole.before.total()
    for each in found.by_host:
        assert each.count == filled(roost, request, on={each.host}).count, each
    for zone in found.zones:
        inside = hosts_in(roost, zone=zone.name)
        assert (zone.hosts, zone.count) == (len(inside), filled(roost, request, on=inside).count), zone
    for aggregate in found.aggregates:
        inside = hosts_in(roost, aggregate=aggregate.uuid)
        assert (aggregate.hosts, aggregate.count) == (len(inside), filled(roost, request, on=inside).count), aggregate
    if found.adds_up:
        # Elsewhere what others take may change by which rule a host is refused that took none to begin with.
        assert by_rule(found.unfit) + by_rule(found.exhausted) == whole.after
        assert sum(each.count for each in found.by_host) == found.count
        assert Counter((each.rule, each.reason) for each in found.by_host) == whole.after
