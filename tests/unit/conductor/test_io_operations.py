"""Instances whose task reads or writes whole disks are I/O operations of their hosts, in every process."""

import pytest

from roost.placement.current import Current
from roost.store.sqlite.store import SqliteStore
from tests.support.conductors.conductors import failed, hand, served, server
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import digest, settings_of, wish

LIMITED = settings_of(
    enabled_filters=("ComputeFilter", "IoOpsFilter"), max_attempts=1, options={"max_io_ops_per_host": 2}
)


def io_ops(on):
    """Give the I/O operations of each host, which are the same to every process and after a restart."""
    found = on.run(lambda current: digest(current.state))
    assert digest(Current(on.store.peer()).state) == found
    return [count for (name, _), count in found["columns"].items() if name == "num_io_ops"]


@pytest.mark.shows("S030", "S031")
@pytest.mark.parametrize("is_burst", [True, False])
@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("IoOpsFilter", "1 have 2 I/O operations in flight or more"),
        ("AggregateIoOpsFilter", "1 have as many I/O operations in flight as their aggregates, or the settings, allow"),
    ],
)
def test_no_more_builds_are_in_flight_on_a_host_than_it_may_have(rule, said, is_burst):
    limited = settings_of(enabled_filters=("ComputeFilter", rule), max_attempts=1, options={"max_io_ops_per_host": 2})
    with server(None, fleet(1, vcpus=16), settings=limited) as one:
        agent = hand(one, "host-0")
        names = [f"io{number}" for number in range(5)]
        for name in names:
            one.build(name, key=name)
            if not is_burst:
                one.turn()
        one.turn()
        statuses = [one.status(name).status for name in names]
        assert sorted(statuses) == ["BUILD", "BUILD", "ERROR", "ERROR", "ERROR"]
        refused = one.status(names[statuses.index("ERROR")])
        assert said in refused.fault
        assert io_ops(one) == [2]
        served(one, agent)
        assert io_ops(one) == [0]
        one.build("io6", key="io6")
        served(one, agent)
        assert one.status("io6").status == "ACTIVE"


def test_builds_of_one_request_count_once():
    with server(None, fleet(2, vcpus=16), settings=LIMITED) as one:
        hands = [hand(one, f"host-{number}") for number in range(2)]
        one.build("a", "b", "c", "d", key="four")
        one.turn()
        assert io_ops(one) == [2, 2]
        one.build("e", key="fifth")
        one.turn()
        assert one.status("e").status == "ERROR"
        served(one, *hands)
        assert io_ops(one) == [0, 0]


def test_a_build_that_fails_counts_on_the_next_host_and_at_the_end_on_none():
    with server(None, fleet(2, vcpus=16)) as one:
        hands = [hand(one, f"host-{number}") for number in range(2)]
        one.build("a", key="a")
        one.turn()
        first = io_ops(one).index(1)
        agent = hands[first]
        (order,) = agent.poll().orders
        agent.act(order, failed())
        one.turn()
        assert io_ops(one)[first] == 0
        served(one, *hands, script={each.host: [failed()] * 4 for each in hands})
        assert io_ops(one) == [0, 0]


@pytest.mark.parametrize(("kind", "count"), [("rebuild", 1), ("shelve", 1)])
def test_tasks_on_an_instance_that_is_there_count(kind, count):
    with server(None, fleet(1, vcpus=16)) as one:
        agent = hand(one, "host-0")
        one.build("a", key="a")
        served(one, agent)
        one.power("a", "stop")
        one.turn()
        assert io_ops(one) == [0]  # To stop an instance reads no disk.
        served(one, agent)
        one.change("a", kind)
        one.turn()
        assert io_ops(one) == [count]
        served(one, agent)
        assert io_ops(one) == [0]
        one.delete("a")
        one.turn()
        assert io_ops(one) == [0]


def test_a_claim_that_nobody_builds_is_no_operation():
    with server(None, fleet(1, vcpus=16)) as one:
        one.run(lambda _current: one.roost.scheduler.work([wish(instance_uuids=(uuid_named("mere"),))]))
        assert io_ops(one) == [0]


@pytest.mark.shows("S101")
def test_the_next_decision_sees_them_and_a_dry_run_does_too():
    weighed = settings_of(options={"io_ops_weight_multiplier": -100.0})
    with server(None, fleet(2, vcpus=16), settings=weighed) as one:
        hands = [hand(one, f"host-{number}") for number in range(2)]
        one.build("a", key="a")
        one.turn()
        busy = io_ops(one).index(1)
        asked = wish(instance_uuids=(uuid_named("b"),))
        (dry,) = one.run(lambda _current: one.roost.work([asked], dry_run=True))
        (real,) = one.run(lambda _current: one.roost.work([asked]))
        assert dry.picks[0].host == real.picks[0].host == f"host-{1 - busy}"
        served(one, *hands)
        assert io_ops(one) == [0, 0]
        assert one.run(lambda _current: one.roost.replay(real.uuid)).is_same


def test_they_are_counted_again_after_a_restart(tmp_path):
    store = SqliteStore(tmp_path / "roost.db")
    with server(store, fleet(1, vcpus=16), settings=LIMITED) as one:
        hand(one, "host-0")
        one.build("a", key="a")  # accepted, and not decided yet
        one.build("b", "c", key="b")
        one.turn()
        before = one.run(lambda current: digest(current.state))
    store.close()
    again = SqliteStore(tmp_path / "roost.db")
    with server(again, settings=LIMITED) as other:
        assert other.run(lambda current: digest(current.state)) == before
    again.close()
