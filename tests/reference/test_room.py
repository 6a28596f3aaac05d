"""The loss of room agrees with its slow twin."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.fleet import Departure
from roost.scheduler.rule_support.size_counts import (
    SizeCounts,
    SizeRequest,
    choose_sizes,
    count_sizes,
    describe_hosts,
    size_table,
)
from roost.scheduler.weighers.room import Room
from tests.reference import room
from tests.support.fleets.fleets import host_view
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.room_fleets import room_host, room_request, room_settings
from tests.support.fleets.worlds import merge_fleets, roost_with

# No product of a capacity and a share of a host is next to a whole number.
KINDS = ((16, 64), (12, 128), (40, 96))
sizes = st.tuples(st.integers(1, 9), st.integers(1, 40))


@settings(max_examples=80)
@given(
    st.dictionaries(sizes, st.integers(1, 500), max_size=40),
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=6),
)
def test_chosen_sizes_and_weights_equal_their_twin(counts, kinds):
    cpus, memory = np.array(kinds, dtype=float).T
    usual = max(kinds, key=lambda kind: (kinds.count(kind), -kinds.index(kind)))
    expected = room.choose_sizes(counts, cpus=cpus.mean(), memory=memory.mean(), usual=usual)
    found = {
        (int(one), int(other)): weight for one, other, weight in choose_sizes(counts, describe_hosts(cpus, memory))
    }
    assert found == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_raw_weights_of_hosts_equal_their_twin(data):
    """After any claims and departures, with kept weights, and before and after the weigher has learned something."""
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=5))
    ratio, reserved = data.draw(st.sampled_from([1.0, 1.5])), data.draw(st.integers(0, 3))
    fleet = merge_fleets(*(room_host(f"h{at}", *kind, ratio=ratio, reserved=reserved) for at, kind in enumerate(kinds)))
    roost = roost_with(fleet, settings=room_settings())
    (weigher,) = roost.rules.weighers
    assert isinstance(weigher, Room)
    counts: dict[tuple[int, int], int] = {}
    if data.draw(st.booleans()):
        size = data.draw(sizes)
        counts[size] = 100
        roost.work([_request(size)] * 100)
    alive = []
    for number in range(data.draw(st.integers(1, 8))):
        size = data.draw(sizes)
        request = _request(size, instance_uuids=(uuid_named(f"instance {number}"),))
        shape = roost.scheduler.compile_shape(request)
        view = host_view(roost.state)
        found = view.follow((weigher, weigher.weight_key(view, shape.spec)), partial(weigher.raw, spec=shape.spec))
        expected = _slow_weights(roost.state, kinds, size, counts=counts, ratio=ratio, reserved=reserved)
        assert found.tolist() == pytest.approx(expected, abs=1e-6)
        if roost.decide(request).is_granted:
            alive.append(request.instance_uuids)
        if alive and data.draw(st.booleans()):
            roost.work([Departure(instance_uuids=alive.pop())])


def _slow_weights(state, kinds, size, *, counts, ratio, reserved):
    columns = state.hosts.columns
    capacities = [(int((cpus - reserved) * ratio), memory - reserved) for cpus, memory in kinds]
    hosts = [
        (*own, own[0] - columns["vcpus_used"].each[row], own[1] - columns["used_ram_mb"].each[row])
        for row, own in enumerate(capacities)
    ]
    return [room.weigh(hosts, at, size, counts) for at in range(len(hosts))]


def _request(size, **request):
    return room_request(*size, **request)


@given(st.lists(st.builds(SizeRequest, st.integers(0, 3), st.integers(0, 3), st.integers(1, 2)), max_size=12))
def test_sizes_without_an_amount_count_as_one_unit(requests):
    """Every chosen size has at least one unit of each, so that the number of its slots is finite."""
    hosts = describe_hosts(np.array([4.0]), np.array([4.0]))
    table = size_table(count_sizes(SizeCounts(), requests, hosts).sizes)
    assert table.cpus.min() >= 1
    assert table.memory.min() >= 1
    assert table.weights.sum() == pytest.approx(1.0)
