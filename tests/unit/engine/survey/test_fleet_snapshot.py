"""Snapshots of a fleet: hosts without providers, parts that stay, and no trace in the columns."""

import threading
from random import Random

import numpy as np
import pytest

from roost.engine.columns.apply import override_host
from roost.engine.columns.state import State
from roost.engine.survey.column_memory import Steadiness
from roost.engine.survey.fleet_snapshot import NO_CAPACITY, SHARE_MAX, SnapshotReader
from tests.support.fleets.changing_fleets import DOWN_TIME_S, NOW_S, ChangingFleet
from tests.support.fleets.worlds import host, hosts, merge_fleets, roost_with, small_request


def read(reader, state):
    """Return a snapshot; all hosts are in the zone east."""
    return reader.read(state, now_s=NOW_S, down_time_s=DOWN_TIME_S, zone_of=lambda _: "east", pause=lambda: None)


def test_share_is_that_of_the_capacity_with_ratio_and_without_reserved_amounts():
    fleet = merge_fleets(host("a", VCPU=8, MEMORY_MB=32), host("b", VCPU=3))
    with roost_with(fleet) as roost:
        roost.decide(small_request(vcpus=1, memory_mb=8))
        snapshot = read(SnapshotReader(), roost.state)
    assert snapshot.layout.capacities.classes == ["VCPU", "MEMORY_MB"]
    assert snapshot.shares.tolist() == [[125, 0], [250, NO_CAPACITY]]
    assert (snapshot.instances.tolist(), snapshot.states.tolist()) == ([1, 0], [0, 0])


def test_share_far_above_the_capacity_is_capped():
    with roost_with(host("a", VCPU=1000, MEMORY_MB=8)) as roost:
        roost.decide(small_request(vcpus=500, memory_mb=1))
        roost.state.classes[roost.state.class_ids.id_of("VCPU")].capacity.data[:] = 1
        snapshot = read(SnapshotReader(), roost.state)
    assert (snapshot.shares[0].tolist(), snapshot.states.tolist()) == ([SHARE_MAX], [8])


def test_hosts_may_report_their_own_amounts():
    with roost_with(hosts(2)) as roost:
        state = roost.state
        state.hosts.are_self_reported = True
        columns = {
            "vcpus_total": 4.0,
            "cpu_allocation_ratio": 2.0,
            "vcpus_used": 6.0,
            "total_usable_ram_mb": 100.0,
            "reserved_ram_mb": 20.0,
            "used_ram_mb": 81.0,
            "total_usable_disk_gb": 0.0,
        }
        override_host(state, 1, columns, ratios={})
        snapshot = read(SnapshotReader(), state)
    assert list(snapshot.layout.capacities.classes) == ["VCPU", "MEMORY_MB", "DISK_GB"]
    assert snapshot.shares[:, 1].tolist() == [750, 1012, NO_CAPACITY]
    assert snapshot.layout.capacities.kinds[snapshot.layout.capacities.kind_of_host[1]] == [8, 80, 0]
    assert snapshot.states.tolist() == [0, 8]


def test_changed_hosts_are_listed_with_shares_instances_and_state():
    with roost_with(hosts(3)) as roost:
        reader = SnapshotReader()
        before = read(reader, roost.state)
        roost.decide(small_request(vcpus=2, memory_mb=8))
        after = read(reader, roost.state)
    (index,) = after.find_changed(before)
    assert after.list_hosts([index]) == [[index, 250, 250, 1, 0]]
    assert (after.list_hosts([]), after.find_changed(after)) == ([], [])


def test_parts_of_the_layout_stay_the_same_objects_while_only_use_changes():
    with roost_with(hosts(3)) as roost:
        reader = SnapshotReader()
        for _ in range(3):
            before = read(reader, roost.state)
        roost.decide(small_request())
        after = read(reader, roost.state)
    assert after.layout.capacities is before.layout.capacities
    assert after.layout.places is before.layout.places
    assert after.layout.racks is before.layout.racks
    assert after.layout.equals(before.layout)


def test_layouts_of_two_readers_are_equal():
    fleet = ChangingFleet(Random(1))
    one, two = read(SnapshotReader(), fleet.state), read(SnapshotReader(), fleet.state.fork())
    assert one.layout.capacities is not two.layout.capacities
    assert one.layout.equals(two.layout)


def test_other_columns_are_read_from_the_start():
    reader, fleets = SnapshotReader(), [ChangingFleet(Random(seed)) for seed in (1, 2)]
    found = [read(reader, fleet.state) for fleet in (*fleets, fleets[0])]
    assert found[0].layout.names == found[2].layout.names != found[1].layout.names
    assert found[0].layout.generation == found[2].layout.generation != found[1].layout.generation


def test_empty_fleet_has_an_empty_snapshot():
    snapshot = read(SnapshotReader(), State())
    assert (len(snapshot), snapshot.layout.names, snapshot.shares.shape) == (0, b"", (0, 0))


def test_value_is_computed_again_until_its_version_was_seen_twice():
    """The columns may raise a version before they change."""
    steadiness = Steadiness()
    assert [steadiness.must_compute(each) for each in (1, 1, 1, 2, 2, 2, 1)] == [
        True,
        True,
        False,
        True,
        True,
        False,
        True,
    ]


def test_snapshot_leaves_no_trace_in_the_columns():
    """Snapshots are read beside the deciding thread, so they must not fill a cache of the columns."""
    with roost_with(hosts(3)) as roost:
        state = roost.state
        state.forget_derived()
        views = [column._view for column in (state.providers.root, state.hosts.alive, state.hosts.provider_row)]
        thread = threading.Thread(target=read, args=(SnapshotReader(), state))
        thread.start()
        thread.join()
        assert state._host_trees is None
        columns = (state.providers.root, state.hosts.alive, state.hosts.provider_row)
        assert [column._view for column in columns] == views


@pytest.mark.parametrize(("count", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_indexes_are_as_narrow_as_possible(count, dtype):
    from roost.engine.survey import fleet_layout

    narrow = fleet_layout._narrow(np.array([count - 1]), count)
    assert (narrow.dtype, narrow.tolist()) == (dtype, [count - 1])
