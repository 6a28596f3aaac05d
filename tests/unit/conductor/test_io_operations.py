"""Tasks that read or write whole disks count as I/O operations of their host, in every process."""

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


def io_ops(here):
    """Return the I/O operations of each host; check that a new process counts the same."""
    state = here.run(lambda current: digest(current.state))
    assert digest(Current(here.store.peer()).state) == state
    return [count for (name, _), count in state["columns"].items() if name == "num_io_ops"]


@pytest.mark.shows("S030", "S031")
@pytest.mark.parametrize("is_burst", [True, False])
@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("IoOpsFilter", "1 have 2 I/O operations in flight or more"),
        ("AggregateIoOpsFilter", "1 have as many I/O operations in flight as their aggregates, or the settings, allow"),
    ],
)
def test_filter_limits_the_builds_in_flight_on_a_host(rule, reason, is_burst):
    limited = settings_of(enabled_filters=("ComputeFilter", rule), max_attempts=1, options={"max_io_ops_per_host": 2})
    with server(None, fleet(1, vcpus=16), settings=limited) as here:
        agent = hand(here, "host-0")
        names = [f"io{number}" for number in range(5)]
        for name in names:
            here.build(name, key=name)
            if not is_burst:
                here.turn()
        here.turn()
        statuses = [here.status(name).status for name in names]
        assert sorted(statuses) == ["BUILD", "BUILD", "ERROR", "ERROR", "ERROR"]
        failed_status = here.status(names[statuses.index("ERROR")])
        assert reason in failed_status.fault
        assert io_ops(here) == [2]
        served(here, agent)
        assert io_ops(here) == [0]
        here.build("io6", key="io6")
        served(here, agent)
        assert here.status("io6").status == "ACTIVE"


def test_each_build_of_one_request_counts_once():
    with server(None, fleet(2, vcpus=16), settings=LIMITED) as here:
        hands = [hand(here, f"host-{number}") for number in range(2)]
        here.build("a", "b", "c", "d", key="four")
        here.turn()
        assert io_ops(here) == [2, 2]
        here.build("e", key="fifth")
        here.turn()
        assert here.status("e").status == "ERROR"
        served(here, *hands)
        assert io_ops(here) == [0, 0]


def test_failed_build_no_longer_counts_on_its_host():
    with server(None, fleet(2, vcpus=16)) as here:
        hands = [hand(here, f"host-{number}") for number in range(2)]
        here.build("a", key="a")
        here.turn()
        first = io_ops(here).index(1)
        agent = hands[first]
        (order,) = agent.poll().orders
        agent.act(order, failed())
        here.turn()
        assert io_ops(here)[first] == 0
        served(here, *hands, script={each.host: [failed()] * 4 for each in hands})
        assert io_ops(here) == [0, 0]


@pytest.mark.parametrize(("kind", "count"), [("rebuild", 1), ("shelve", 1)])
def test_rebuild_and_shelve_count_as_io_operations(kind, count):
    with server(None, fleet(1, vcpus=16)) as here:
        agent = hand(here, "host-0")
        here.build("a", key="a")
        served(here, agent)
        here.power("a", "stop")
        here.turn()
        assert io_ops(here) == [0]  # A stop reads no disk.
        served(here, agent)
        here.change("a", kind)
        here.turn()
        assert io_ops(here) == [count]
        served(here, agent)
        assert io_ops(here) == [0]
        here.delete("a")
        here.turn()
        assert io_ops(here) == [0]


def test_claim_without_a_build_is_not_an_io_operation():
    with server(None, fleet(1, vcpus=16)) as here:
        here.run(lambda _current: here.roost.scheduler.work([wish(instance_uuids=(uuid_named("mere"),))]))
        assert io_ops(here) == [0]


@pytest.mark.shows("S101")
def test_next_decision_and_dry_run_avoid_the_busy_host():
    weighted = settings_of(options={"io_ops_weight_multiplier": -100.0})
    with server(None, fleet(2, vcpus=16), settings=weighted) as here:
        hands = [hand(here, f"host-{number}") for number in range(2)]
        here.build("a", key="a")
        here.turn()
        busy = io_ops(here).index(1)
        request = wish(instance_uuids=(uuid_named("b"),))
        (dry,) = here.run(lambda _current: here.roost.work([request], dry_run=True))
        (real,) = here.run(lambda _current: here.roost.work([request]))
        assert dry.picks[0].host == real.picks[0].host == f"host-{1 - busy}"
        served(here, *hands)
        assert io_ops(here) == [0, 0]
        assert here.run(lambda _current: here.roost.replay(real.uuid)).is_same


def test_io_operations_are_the_same_after_a_restart(tmp_path):
    store = SqliteStore(tmp_path / "roost.db")
    with server(store, fleet(1, vcpus=16), settings=LIMITED) as here:
        hand(here, "host-0")
        here.build("a", key="a")  # accepted, and not decided yet
        here.build("b", "c", key="b")
        here.turn()
        before = here.run(lambda current: digest(current.state))
    store.close()
    reopened = SqliteStore(tmp_path / "roost.db")
    with server(reopened, settings=LIMITED) as other:
        assert other.run(lambda current: digest(current.state)) == before
    reopened.close()
