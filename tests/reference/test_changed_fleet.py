"""Capacity after a change of the fleet equals the capacity of a fleet that really has, or lacks, these hosts."""

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.errors import BadRequest, RoostError
from roost.model.evidence.capacity import AddedHosts, FleetChange
from roost.model.fleet import Fleet
from roost.model.names import uuid_text
from roost.model.writes import CLASS_BITS, DropProvider, Item
from tests.reference.plain_worlds import FILTERS, fleet_of, random_wish, random_world, request_of
from tests.support.fleets.worlds import digest, roost_on, settings_of


def copies(fleet: Fleet, node: str, count: int) -> Fleet:
    """Return empty copies of a host with all providers of its tree."""
    host = next(each for each in fleet.hosts if each.node == node)
    tree = {host.provider_uuid: 0}
    for provider in fleet.providers:  # Parents come before children.
        if provider.parent_uuid in tree:
            tree[provider.uuid] = len(tree)
    sources = [provider for provider in fleet.providers if provider.uuid in tree]
    providers, hosts = [], []
    for number in range(1, count + 1):
        name = f"{node} copy {number}"

        def uuid(source: str, number: int = number) -> str:
            return f"{number:08x}{source[8:]}"

        providers += [
            msgspec.structs.replace(
                source,
                uuid=uuid(source.uuid),
                name=name if source.parent_uuid is None else f"{name} {source.name}",
                parent_uuid=None if source.parent_uuid is None else uuid(source.parent_uuid),
            )
            for source in sources
        ]
        facts = msgspec.structs.replace(host.facts, num_io_ops=0, failed_builds=0)
        hosts.append(
            msgspec.structs.replace(host, provider_uuid=uuid(host.provider_uuid), host=name, node=name, facts=facts)
        )
    return Fleet(providers=providers, hosts=hosts)


def remove(roost, nodes: set[str]) -> None:
    """Delete hosts with their providers and consumers, in commits."""
    state = roost.state
    roots = [state.hosts.provider_row.each[row] for row, node in enumerate(state.hosts.nodes) if node in nodes]
    ids = [state.providers.ids[row] for root in roots for row in reversed(state.providers.subtree(root))]
    held = [
        holder.uuid
        for holder in state.holders.values()
        if any(take[0] >> CLASS_BITS in ids for take in holder.takes)
        or (holder.instance is not None and state.hosts.nodes[state.hosts.row_of_id[holder.instance.host_id]] in nodes)
    ]
    roost.placement.release([uuid_text(each) for each in held])
    assert set(roost.placement.flush()) <= {None}
    for number in ids:
        assert roost.placement.commit([Item(writes=(DropProvider(number),))]) == [None]
    roost.placement.refresh()


def nodes_in(roost, zone: str) -> set[str]:
    """Return the nodes whose root is in an aggregate of a zone."""
    state = roost.state
    found = {number for number, metadata in state.metadata.items() if metadata.get("availability_zone") == zone}
    pairs = zip(state.hosts.nodes, state.hosts.provider_row.view.tolist(), strict=True)
    return {node for node, row in pairs if state.membership.labels_of(row) & found}


def change_and_compare(seed: int) -> None:
    """Serve some requests, change the fleet in a question and in fact, and compare the capacity of others."""
    random = Random(seed)
    world = random_world(random)
    fleet = fleet_of(world)
    roost = roost_on(settings=settings_of(enabled_filters=FILTERS))
    roost.install(fleet)
    for _ in range(random.choice((0, 3, 8))):
        try:
            roost.decide(request_of(random_wish(random, world)))
        except RoostError:
            continue
    nodes = [host.node for host in fleet.hosts]
    if not nodes:
        return
    zones = [zone for zone in ("east", "west") if random.random() < 0.3 and nodes_in(roost, zone)]
    added = [AddedHosts(like=random.choice(nodes), count=random.randint(1, 3))] if random.random() < 0.6 else []
    change = FleetChange(
        without_zones=tuple(zones),
        without_hosts=tuple(random.sample(nodes, random.choice((0, 0, 1, min(2, len(nodes)))))),
        add_hosts=tuple(added),
    )
    requests = [request_of(random_wish(random, world)) for _ in range(3)]
    before = digest(roost.state)
    counted = [capacity_of(roost, request, change) for request in requests]
    assert digest(roost.state) == before
    lost = set(change.without_hosts).union(*(nodes_in(roost, zone) for zone in zones))
    for each in added:
        roost.install(copies(fleet, each.like, each.count))
    remove(roost, lost)
    for request, found in zip(requests, counted, strict=True):
        assert found == capacity_of(roost, request, None), (change, request)


def capacity_of(roost, request, change):
    """Return a capacity without the order of equal shortages; the type of its error if it fails."""
    try:
        found = roost.capacity(request, change=change)
    except RoostError as error:
        return type(error)
    return msgspec.structs.replace(
        found,
        exhausted=sorted(found.exhausted, key=lambda each: (each.rule, each.reason)),
        unfit=sorted(found.unfit, key=lambda each: (each.rule, each.reason)),
    )


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_counted_change_equals_the_change_itself(seed):
    change_and_compare(seed)


def test_copies_have_their_providers_in_the_order_of_the_original():
    change_and_compare(337616)


@pytest.mark.soak
@settings(max_examples=2_000)
@given(st.integers(0, 2**32))
def test_counted_change_equals_the_change_itself_in_long_runs(seed):
    change_and_compare(seed)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (FleetChange(without_zones=("nowhere",)), "there is no availability zone 'nowhere'"),
        (FleetChange(without_hosts=("nobody",)), "there is no host 'nobody'"),
        (FleetChange(add_hosts=(AddedHosts(like="nobody", count=1),)), "there is no host 'nobody'"),
        (FleetChange(add_hosts=(AddedHosts(like="p0", count=6000),) * 2), "at most 10,000 hosts can be added"),
    ],
)
def test_unknown_names_and_too_many_hosts_are_refused(change, problem):
    random = Random(1)
    world = random_world(random)
    roost = roost_on()
    roost.install(fleet_of(world))
    with pytest.raises(BadRequest, match=problem):
        roost.capacity(request_of(random_wish(random, world)), change=change)
