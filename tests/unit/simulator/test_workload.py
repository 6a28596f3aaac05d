from hypothesis import given
from hypothesis import strategies as st

from roost.model.flavor import Flavor
from roost.model.fleet import Departure, Fleet
from roost.model.request import Request
from roost.simulator.workload import Options, Stay, build_workload

FLAVOR = Flavor(name="one", vcpus=1)
spans = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


def stays(lengths):
    return [
        Stay(Request(flavor=FLAVOR, instance_uuids=(str(index),)), float(start), float(start + length))
        for index, (start, length) in enumerate(lengths)
    ]


@given(spans)
def test_departure_follows_its_arrival_and_precedes_simultaneous_arrivals(lengths):
    events = build_workload(stays(lengths), name="", fleet=Fleet(), options=Options()).events
    started: dict[str, float] = {}
    arrived_at: list[float] = []
    for event in events:
        uuid = event.act.instance_uuids[0]
        if isinstance(event.act, Departure):
            assert uuid in started
            assert started[uuid] == event.at_s or event.at_s not in arrived_at
        else:
            started[uuid] = event.at_s
            arrived_at.append(event.at_s)
    assert len(started) == len(lengths)
    assert arrived_at == sorted(arrived_at)


def test_departures_after_the_last_arrival_are_left_out():
    workload = build_workload(stays([(0, 1), (0, 4), (3, 9)]), name="", fleet=Fleet(), options=Options())
    assert [event.at_s for event in workload.events] == [0, 0, 1, 3]
    assert workload.notes == ("2 of 3 requests outlive the last arrival, where the replay ends",)
