"""A slow capacity count: decide on a fork, one instance at a time, until a refusal."""

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

Refusals = Counter[tuple[str, str]]  # rule and reason -> hosts


class Placements(NamedTuple):
    """The count of placed instances, and the refusals of the first and last decision."""

    count: int
    before: Refusals  # of the first decision
    after: Refusals  # of the refused decision


def place_all(roost: Roost, request: Request, *, on: Collection[str] | None = None) -> Placements:
    """Place instances one by one on some hosts or all, until a refusal."""
    fork = roost.fork()
    others = () if on is None else tuple(name for name in roost.state.hosts.names if name not in on)
    one = msgspec.structs.replace(request, count=1, instance_uuids=(), ignore_hosts=(*request.ignore_hosts, *others))
    first = decision = fork.decide(one)
    count = 0
    while decision.is_granted:
        count += 1
        decision = fork.decide(one)
    return Placements(count, refusals_of(first), refusals_of(decision))


def refusals_of(decision: Decision) -> Refusals:
    """Return the number of hosts that each rule refused in a decision."""
    found: Refusals = Counter()
    for stage in decision.stages:
        if stage.before > stage.after:
            found[stage.rule, stage.reason] += stage.before - stage.after
    return found


def by_rule(shortages: list[Shortage]) -> Refusals:
    """Return the number of hosts that each rule refused in a capacity."""
    found: Refusals = Counter()
    for each in shortages:
        found[each.rule, each.reason] += each.hosts
    return found


def hosts_in(roost: Roost, *, zone: str | None = None, aggregate: str | None = None) -> set[str]:
    """Return the hosts whose root is in an aggregate or a zone; hosts without a zone are in the default zone."""
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
        return {name for name, aggregates in labels.items() if not aggregates & others}
    return {name for name, aggregates in labels.items() if aggregates & wanted}


def compare(roost: Roost, request: Request) -> None:
    """Compare a capacity with the slow count."""
    before = digest(roost.state)
    try:
        found = roost.capacity(request)
    except RoostError as error:
        with pytest.raises(type(error)):
            roost.decide(request, dry_run=True)
        return
    assert digest(roost.state) == before
    whole = place_all(roost, request)
    assert found.count == whole.count
    assert by_rule(found.unfit) == whole.before
    assert by_rule(found.exhausted) <= whole.after
    assert found.takers == found.hosts - whole.before.total()
    for each in found.by_host:
        assert each.count == place_all(roost, request, on={each.host}).count, each
    for zone in found.zones:
        inside = hosts_in(roost, zone=zone.name)
        assert (zone.hosts, zone.count) == (len(inside), place_all(roost, request, on=inside).count), zone
    for aggregate in found.aggregates:
        inside = hosts_in(roost, aggregate=aggregate.uuid)
        count = place_all(roost, request, on=inside).count
        assert (aggregate.hosts, aggregate.count) == (len(inside), count), aggregate
    if found.adds_up:
        # Otherwise placed instances may change which rule refuses a host that was unfit from the start.
        assert by_rule(found.unfit) + by_rule(found.exhausted) == whole.after
        assert sum(each.count for each in found.by_host) == found.count
        assert Counter((each.rule, each.reason) for each in found.by_host) == whole.after
