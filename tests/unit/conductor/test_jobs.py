"""Periodic jobs: one process at a time runs them, and marks silent agents as gone."""

import pytest

from roost.errors import StoreBroken, Unavailable
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import (
    DOWN_TIME_S,
    TERMS,
    PlayedAgent,
    Server,
    played_agent,
    run_until_idle,
    server,
)
from tests.support.databases.racing_stores import OvertakenStore
from tests.support.fleets.worlds import small_request


class UnreadableAgent:
    """A reader that cannot decode the agent of h0."""

    def __init__(self, reader):
        self._reader = reader

    def __getattr__(self, name):
        return getattr(self._reader, name)

    def agent(self, host):
        """See ``WorkReader.agent``."""
        if host == "h0":
            raise StoreBroken(f"the row of {host} cannot be understood")
        return self._reader.agent(host)


@pytest.fixture
def app():
    with server(None, ladder(2)) as app:
        yield app


def raise_unavailable(_items):
    """Fail like a database that is away."""
    raise Unavailable("the database is away")


def is_up(app, name):
    decision = app.run(lambda _current: app.roost.decide(small_request(force_hosts=(name,)), dry_run=True))
    return decision.is_granted


def pass_time(app, jobs, seconds, *agents):
    """Advance the time in steps of six seconds; after each, send heartbeats of some agents and run the jobs."""
    for _ in range(0, int(seconds), 6):
        app.clock.time_s += 6
        for each in agents:
            each.beat()
        jobs.turn()


def test_silent_agent_is_down_until_it_registers_again(app):
    h0, h1 = played_agent(app, "h0"), played_agent(app, "h1")
    jobs = app.jobs()
    pass_time(app, jobs, DOWN_TIME_S, h1)
    assert [agent.state for agent in app.reader.agents()] == ["ready", "ready"]
    heard_s = app.reader.agent("h0").heard_at_s
    pass_time(app, jobs, 6, h1)
    assert [agent.state for agent in app.reader.agents()] == ["gone", "ready"]
    assert (is_up(app, "h0"), is_up(app, "h1")) == (True, True)  # Forced requests ignore liveness.
    decision = app.run(lambda _current: app.roost.decide(small_request(), dry_run=True))
    assert [pick.host for pick in decision.picks] == ["h1"]
    assert app.roost.state.hosts.facts[0].reported_at_s == heard_s
    assert h0.poll().unknown == ("h0",)
    h0.register()
    decision = app.run(lambda _current: app.roost.decide(small_request(), dry_run=True))
    assert [pick.host for pick in decision.picks] == ["h0"]


def test_build_on_a_silent_host_continues_on_an_alternate(app):
    h0, h1 = played_agent(app, "h0"), played_agent(app, "h1")
    jobs = app.jobs()
    app.build("one")
    app.turn()
    h0.poll()
    pass_time(app, jobs, DOWN_TIME_S + 6, h1)
    run_until_idle(app, h1)
    assert (app.status("one").status, app.status("one").host) == ("ACTIVE", "h1")


def test_silence_is_counted_from_the_start_of_the_server(app):
    played_agent(app, "h0")
    app.clock.time_s += 1000
    jobs = app.jobs("after a restart")
    jobs.turn()
    pass_time(app, jobs, DOWN_TIME_S)
    assert app.reader.agent("h0").state == "ready"
    pass_time(app, jobs, 6)
    assert app.reader.agent("h0").state == "gone"


def test_silence_is_counted_again_after_a_database_outage(app, monkeypatch):
    played_agent(app, "h0")
    jobs = app.jobs()
    pass_time(app, jobs, DOWN_TIME_S - 12)
    with monkeypatch.context() as patched:
        patched.setattr(app.store, "commit", raise_unavailable)
        for _ in range(4):
            with pytest.raises(Unavailable):
                pass_time(app, jobs, 6)
    pass_time(app, jobs, DOWN_TIME_S + 6)
    assert app.reader.agent("h0").state == "ready"
    pass_time(app, jobs, 6)
    assert app.reader.agent("h0").state == "gone"


def test_process_that_serves_no_agents_marks_none_as_gone(app):
    played_agent(app, "h0")
    pass_time(app, app.jobs("conductor", is_hearing=False), DOWN_TIME_S + 6)
    assert (app.reader.agent("h0").state, app.reader.lease("watch")) == ("ready", None)


def test_job_passes_to_another_process_once_the_lease_expires(app):
    played_agent(app, "h0")
    one, two = app.jobs("one"), app.jobs("two")
    one.turn()
    two.turn()
    assert app.reader.lease("watch").owner == "one"
    app.clock.time_s += 6
    one.turn()
    two.turn()
    assert (app.reader.lease("watch").owner, app.reader.lease("watch").version) == ("one", 2)
    app.clock.time_s += 9
    two.turn()
    assert app.reader.lease("watch").owner == "one"
    app.clock.time_s += 5
    two.turn()
    assert app.reader.lease("watch").owner == "two"
    version = app.reader.lease("watch").version
    two.turn()
    assert app.reader.lease("watch").version == version


def leave_before(app, step, *, name):
    """Return a hook that lets an agent leave after a step was computed, right before its commit."""
    left = []

    def leave_once():
        is_now = any(row.step == step and row.owner for row in app.peer.open_operations())
        if is_now and not left:
            left.append(name)
            PlayedAgent(app.peer, name).leave()

    return leave_once


def test_build_continues_elsewhere_if_the_agent_left_as_it_was_ordered():
    with server(OvertakenStore(), ladder(2)) as app:
        app.peer = Server(app.store.peer(), clock=app.clock)
        hands = [played_agent(app, f"h{number}") for number in range(2)]
        app.build("one")
        app.store.meanwhile = leave_before(app, "send", name="h0")
        app.turn()
        (spawn,) = app.open_operations()
        assert (app.reader.agent("h0").state, spawn.due_at_s) == ("gone", app.clock.now_s() + TERMS.build_timeout_s)
        app.jobs().turn()
        run_until_idle(app, hands[1])
        app.peer.stop()
        assert (app.status("one").status, app.status("one").host) == ("ACTIVE", "h1")


def test_destroy_order_waits_for_the_return_of_its_host(app):
    hands = [played_agent(app, f"h{number}") for number in range(2)]
    app.build("one")
    run_until_idle(app, *hands)
    hands[0].leave()
    app.delete("one")
    app.turn()
    (operation,) = [row for row in app.reader.operations(limit=9) if row.kind == "delete"]
    jobs = app.jobs()
    for _ in range(2):
        jobs.turn()
        app.clock.time_s += 6
    assert app.reader.operation(operation.id) == operation
    assert [order.action for order in app.reader.open_orders(["h0"], limit=9)] == ["destroy"]


def test_unreadable_agent_does_not_stop_the_watch_of_others(app, capsys):
    for number in range(2):
        played_agent(app, f"h{number}")
    jobs = app.jobs()
    jobs.reader = UnreadableAgent(app.reader)
    pass_time(app, jobs, DOWN_TIME_S + 6)
    assert [agent.state for agent in app.reader.agents()] == ["ready", "gone"]
    assert "the row of h0 cannot be understood" in capsys.readouterr().err
    jobs.reader = app.reader
    app.clock.time_s += 5
    jobs.turn()
    assert app.reader.agent("h0").state == "gone"
