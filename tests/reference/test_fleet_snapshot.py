"""Snapshots of a fleet equal those of a loop over hosts, whatever changed since the last one."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.app.monitoring.host_zones import zone_finder
from roost.engine.survey import fleet_layout
from roost.engine.survey.fleet_snapshot import SnapshotReader
from tests.reference.fleet_snapshot import list_hosts
from tests.support.fleets.changing_fleets import DEFAULT_ZONE, DOWN_TIME_S, NOW_S, ChangingFleet


def read(reader, state, *, draining=()):
    """Return a snapshot."""
    times, zone_of = {"now_s": NOW_S, "down_time_s": DOWN_TIME_S}, zone_finder(state, default_zone=DEFAULT_ZONE)
    return reader.read(state, **times, zone_of=zone_of, pause=lambda: None, draining=draining)


def describe(snapshot):
    """Return a snapshot in the form of the slow one."""
    layout, hosts = snapshot.layout, []
    places, racks, capacities = layout.places, layout.racks, layout.capacities
    names = layout.names.decode().splitlines()
    assert len(names) == len(snapshot) == len(layout.rows)
    for at, name in enumerate(names):
        place = places.places[places.of_host[at]]
        hosts.append(
            {
                "name": name,
                "shares": snapshot.shares[:, at].tolist(),
                "instances": int(snapshot.instances[at]),
                "state": int(snapshot.states[at]),
                "reported_s": int(snapshot.reported_s[at]),
                "zone": places.zones[place.zone],
                "aggregates": sorted(places.aggregates[each] for each in place.aggregates),
                "rack": racks.names[racks.of_host[at]],
                "kind": list(capacities.kinds[capacities.kind_of_host[at]]),
            }
        )
    return list(capacities.classes), hosts


@pytest.mark.parametrize("classes_max", [8, 2])
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(0, 12))
def test_snapshot_equals_a_loop_over_hosts(classes_max, seed, steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet_layout, "CLASSES_MAX", classes_max)
        fleet, reader = ChangingFleet(Random(seed)), SnapshotReader()
        for _ in range(steps + 1):
            names = sorted({name.lower() for name in fleet.state.hosts.names})
            draining = {*fleet.random.sample(names, k=min(2, len(names))), "unknown"}
            slow = list_hosts(
                fleet.state,
                now_s=NOW_S,
                down_time_s=DOWN_TIME_S,
                default_zone=DEFAULT_ZONE,
                classes_max=classes_max,
                draining=draining,
            )
            assert describe(read(reader, fleet.state, draining=draining)) == slow
            again = [read(each, fleet.state, draining=draining) for each in (reader, SnapshotReader())]
            assert describe(again[0]) == describe(again[1]) == slow
            assert again[0].layout.generation == again[1].layout.generation
            order = fleet_layout.read_order(fleet.state)
            assert order.generation == again[0].layout.generation
            assert order.rows.tolist() == again[0].layout.rows.tolist()
            fleet.change()
