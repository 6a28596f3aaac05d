"""The conductor thread of a server: wake-ups, takeover from a dead process, and the end of the thread."""

import pytest

from roost.app.conductor_thread import ConductorThread, operation_terms
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.errors import StoreBroken
from roost.machine import SystemClock
from roost.model.settings.conductor_settings import Conductor
from roost.model.settings.roost_settings import Settings
from roost.model.writes import Item
from roost.store.sqlite.store import SqliteStore
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import played_agent, server
from tests.support.wait import wait_until


@pytest.fixture
def site(tmp_path):
    """Return a server with a conductor that polls only once a minute, so that wake-ups drive it."""
    operating = ConductorThread(poll_s=60.0)
    with server(SqliteStore(tmp_path / "roost.db"), ladder(2), clock=SystemClock(), on_work=operating.wake_for) as here:
        here.operating = operating
        yield here
        operating.join()


def orders(agent):
    """Wait for the orders of an agent."""
    received = []
    wait_until(lambda: received or received.extend(agent.poll().orders))
    return received


def test_requests_and_replies_wake_the_conductor_at_once(site):
    h0 = played_agent(site, "h0")
    site.operating.start(site.roost, site.serving)
    site.build("one")
    h0.act(orders(h0)[0])
    wait_until(lambda: site.status("one").status == "ACTIVE")
    site.delete("one")
    h0.act(orders(h0)[0])
    wait_until(lambda: site.status("one").status == "DELETED")
    site.operating.join()
    assert (site.used()["VCPU"], site.open_operations()) == (0, [])


def test_conductor_takes_over_operations_of_a_dead_process(site):
    h0 = played_agent(site, "h0")
    operation = site.build("one")
    foreign = next_version(operation, owner="dead", owned_until_s=site.clock.now_s() + 3600)
    site.run(lambda current: current.commit([Item(writes=(), work=(replace_row(foreign),))]))
    site.operating.start(site.roost, site.serving)
    h0.act(orders(h0)[0])
    wait_until(lambda: site.status("one").status == "ACTIVE")


def test_conductor_survives_temporary_database_failures(site, monkeypatch, capfd):
    h0 = played_agent(site, "h0")
    site.operating._poll_s = 0.01
    commit, failures = site.store.commit, []

    def full(items):
        if len(failures) < 5:
            failures.append(items)
            raise StoreBroken("no space left")
        return commit(items)

    site.build("one")
    monkeypatch.setattr(site.store, "commit", full)
    site.terms = None
    site.operating.start(site.roost, site.serving)
    wait_until(lambda: len(failures) == 5)
    h0.act(orders(h0)[0])
    wait_until(lambda: site.status("one").status == "ACTIVE")
    assert "database_is_well" in capfd.readouterr().err


def test_only_the_process_that_hears_agents_takes_the_watch_lease(tmp_path):
    with server(SqliteStore(tmp_path / "roost.db"), ladder(2), clock=SystemClock()) as here:
        h0 = played_agent(here, "h0")
        here.build("one")
        watcher, conductor = ConductorThread(cells=(), poll_s=0.01), ConductorThread(is_polled=False, poll_s=0.01)
        watcher.start(here.roost, here.serving)
        wait_until(lambda: here.reader.lease("watch") is not None)
        watcher.join()
        lease, (build,) = here.reader.lease("watch"), here.open_operations()
        assert (build.step, build.owner) == ("choose", "")
        conductor.start(here.roost, here.serving)
        h0.act(orders(h0)[0])
        wait_until(lambda: here.status("one").status == "ACTIVE")
        conductor.join()
        assert here.reader.lease("watch") == lease


def test_join_of_an_unstarted_conductor_returns_at_once():
    ConductorThread().join()


def test_operation_terms_come_from_the_settings():
    terms = operation_terms(Settings(conductor=Conductor(build_timeout_s=1.5, act_timeout_s=2.5, owner_s=3.5)))
    assert (terms.attempts_max, terms.build_timeout_s, terms.act_timeout_s, terms.owner_s) == (3, 1.5, 2.5, 3.5)
    for name in ("build_timeout_s", "act_timeout_s", "owner_s"):
        with pytest.raises(ValueError, match=f"{name} must be more than 0, got 0"):
            Conductor(**{name: 0})
