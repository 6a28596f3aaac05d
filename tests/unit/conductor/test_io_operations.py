"""Tasks that read or write whole disks count as I/O operations of their host, in every process."""

import pytest

from roost.placement.current import Current
from roost.store.sqlite.store import SqliteStore
from tests.support.conductors.conductors import failure, played_agent, run_until_idle, server
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import digest, settings_of, small_request

LIMITED = settings_of(
    enabled_filters=("ComputeFilter", "IoOpsFilter"), max_attempts=1, options={"max_io_ops_per_host": 2}
)


def io_ops(app):
    """Return the I/O operations of each host; check that a new process counts the same."""
    state = app.run(lambda current: digest(current.state))
    assert digest(Current(app.store.peer()).state) == state
    return [count for (name, _), count in state["columns"].items() if name == "num_io_ops"]


@pytest.mark.shows("S030", "S031")
@pytest.mark.parametrize("is_burst", [True, False])
@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("IoOpsFilter", "1 has 2 I/O operations in flight or more"),
        (
            "AggregateIoOpsFilter",
            "1 has as many I/O operations in flight as aggregates of the host, or the settings, allow",
        ),
    ],
)
def test_filter_limits_the_builds_in_flight_on_a_host(rule, reason, is_burst):
    limited = settings_of(enabled_filters=("ComputeFilter", rule), max_attempts=1, options={"max_io_ops_per_host": 2})
    with server(None, fleet(1, vcpus=16), settings=limited) as app:
        agent = played_agent(app, "host-0")
        names = [f"io{number}" for number in range(5)]
        for name in names:
            app.build(name, key=name)
            if not is_burst:
                app.turn()
        app.turn()
        statuses = [app.status(name).status for name in names]
        assert sorted(statuses) == ["BUILD", "BUILD", "ERROR", "ERROR", "ERROR"]
        failed_status = app.status(names[statuses.index("ERROR")])
        assert reason in failed_status.fault
        assert io_ops(app) == [2]
        run_until_idle(app, agent)
        assert io_ops(app) == [0]
        app.build("io6", key="io6")
        run_until_idle(app, agent)
        assert app.status("io6").status == "ACTIVE"


def test_each_build_of_one_request_counts_once():
    with server(None, fleet(2, vcpus=16), settings=LIMITED) as app:
        hands = [played_agent(app, f"host-{number}") for number in range(2)]
        app.build("a", "b", "c", "d", key="four")
        app.turn()
        assert io_ops(app) == [2, 2]
        app.build("e", key="fifth")
        app.turn()
        assert app.status("e").status == "ERROR"
        run_until_idle(app, *hands)
        assert io_ops(app) == [0, 0]


def test_failed_build_no_longer_counts_on_its_host():
    with server(None, fleet(2, vcpus=16)) as app:
        hands = [played_agent(app, f"host-{number}") for number in range(2)]
        app.build("a", key="a")
        app.turn()
        first = io_ops(app).index(1)
        agent = hands[first]
        (order,) = agent.poll().orders
        agent.act(order, failure())
        app.turn()
        assert io_ops(app)[first] == 0
        run_until_idle(app, *hands, script={each.host: [failure()] * 4 for each in hands})
        assert io_ops(app) == [0, 0]


@pytest.mark.parametrize(("kind", "count"), [("rebuild", 1), ("shelve", 1)])
def test_rebuild_and_shelve_count_as_io_operations(kind, count):
    with server(None, fleet(1, vcpus=16)) as app:
        agent = played_agent(app, "host-0")
        app.build("a", key="a")
        run_until_idle(app, agent)
        app.power("a", "stop")
        app.turn()
        assert io_ops(app) == [0]  # A stop reads no disk.
        run_until_idle(app, agent)
        app.change("a", kind)
        app.turn()
        assert io_ops(app) == [count]
        run_until_idle(app, agent)
        assert io_ops(app) == [0]
        app.delete("a")
        app.turn()
        assert io_ops(app) == [0]


def test_claim_without_a_build_is_not_an_io_operation():
    with server(None, fleet(1, vcpus=16)) as app:
        app.run(lambda _current: app.roost.scheduler.work([small_request(instance_uuids=(uuid_named("mere"),))]))
        assert io_ops(app) == [0]


@pytest.mark.shows("S101")
def test_next_decision_and_dry_run_avoid_the_busy_host():
    weighted = settings_of(options={"io_ops_weight_multiplier": -100.0})
    with server(None, fleet(2, vcpus=16), settings=weighted) as app:
        hands = [played_agent(app, f"host-{number}") for number in range(2)]
        app.build("a", key="a")
        app.turn()
        busy = io_ops(app).index(1)
        request = small_request(instance_uuids=(uuid_named("b"),))
        (dry,) = app.run(lambda _current: app.roost.work([request], dry_run=True))
        (real,) = app.run(lambda _current: app.roost.work([request]))
        assert dry.picks[0].host == real.picks[0].host == f"host-{1 - busy}"
        run_until_idle(app, *hands)
        assert io_ops(app) == [0, 0]
        assert app.run(lambda _current: app.roost.replay(real.uuid)).is_same


def test_io_operations_are_the_same_after_a_restart(tmp_path):
    store = SqliteStore(tmp_path / "roost.db")
    with server(store, fleet(1, vcpus=16), settings=LIMITED) as app:
        played_agent(app, "host-0")
        app.build("a", key="a")  # accepted, and not decided yet
        app.build("b", "c", key="b")
        app.turn()
        before = app.run(lambda current: digest(current.state))
    store.close()
    reopened = SqliteStore(tmp_path / "roost.db")
    with server(reopened, settings=LIMITED) as other:
        assert other.run(lambda current: digest(current.state)) == before
    reopened.close()
