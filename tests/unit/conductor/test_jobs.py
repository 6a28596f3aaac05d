"""Periodic jobs: one process at a time runs them, and marks silent agents as gone."""

import pytest

from roost.errors import StoreBroken, Unavailable
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import DOWN_TIME_S, TERMS, Hand, Server, hand, served, server
from tests.support.databases.racing_stores import Overtaken
from tests.support.fleets.worlds import wish


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
def here():
    with server(None, ladder(2)) as here:
        yield here


def raise_unavailable(_items):
    """Fail like a database that is away."""
    raise Unavailable("the database is away")


def is_up(here, name):
    decision = here.run(lambda _current: here.roost.decide(wish(force_hosts=(name,)), dry_run=True))
    return decision.is_granted


def pass_time(here, jobs, seconds, *agents):
    """Advance the time in steps of six seconds; after each, send heartbeats of some agents and run the jobs."""
    for _ in range(0, int(seconds), 6):
        here.clock.time_s += 6
        for each in agents:
            each.beat()
        jobs.turn()


def test_silent_agent_is_down_until_it_registers_again(here):
    h0, h1 = hand(here, "h0"), hand(here, "h1")
    jobs = here.jobs()
    pass_time(here, jobs, DOWN_TIME_S, h1)
    assert [agent.state for agent in here.reader.agents()] == ["ready", "ready"]
    heard_s = here.reader.agent("h0").heard_at_s
    pass_time(here, jobs, 6, h1)
    assert [agent.state for agent in here.reader.agents()] == ["gone", "ready"]
    assert (is_up(here, "h0"), is_up(here, "h1")) == (True, True)  # Forced requests ignore liveness.
    decision = here.run(lambda _current: here.roost.decide(wish(), dry_run=True))
    assert [pick.host for pick in decision.picks] == ["h1"]
    assert here.roost.state.hosts.facts[0].reported_at_s == heard_s
    assert h0.poll().unknown == ("h0",)
    h0.register()
    decision = here.run(lambda _current: here.roost.decide(wish(), dry_run=True))
    assert [pick.host for pick in decision.picks] == ["h0"]


def test_build_on_a_silent_host_continues_on_an_alternate(here):
    h0, h1 = hand(here, "h0"), hand(here, "h1")
    jobs = here.jobs()
    here.build("one")
    here.turn()
    h0.poll()
    pass_time(here, jobs, DOWN_TIME_S + 6, h1)
    served(here, h1)
    assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h1")


def test_silence_is_counted_from_the_start_of_the_server(here):
    hand(here, "h0")
    here.clock.time_s += 1000
    jobs = here.jobs("after a restart")
    jobs.turn()
    pass_time(here, jobs, DOWN_TIME_S)
    assert here.reader.agent("h0").state == "ready"
    pass_time(here, jobs, 6)
    assert here.reader.agent("h0").state == "gone"


def test_silence_is_counted_again_after_a_database_outage(here, monkeypatch):
    hand(here, "h0")
    jobs = here.jobs()
    pass_time(here, jobs, DOWN_TIME_S - 12)
    with monkeypatch.context() as patched:
        patched.setattr(here.store, "commit", raise_unavailable)
        for _ in range(4):
            with pytest.raises(Unavailable):
                pass_time(here, jobs, 6)
    pass_time(here, jobs, DOWN_TIME_S + 6)
    assert here.reader.agent("h0").state == "ready"
    pass_time(here, jobs, 6)
    assert here.reader.agent("h0").state == "gone"


def test_process_that_serves_no_agents_marks_none_as_gone(here):
    hand(here, "h0")
    pass_time(here, here.jobs("conductor", is_hearing=False), DOWN_TIME_S + 6)
    assert (here.reader.agent("h0").state, here.reader.lease("watch")) == ("ready", None)


def test_job_passes_to_another_process_once_the_lease_expires(here):
    hand(here, "h0")
    one, two = here.jobs("one"), here.jobs("two")
    one.turn()
    two.turn()
    assert here.reader.lease("watch").owner == "one"
    here.clock.time_s += 6
    one.turn()
    two.turn()
    assert (here.reader.lease("watch").owner, here.reader.lease("watch").version) == ("one", 2)
    here.clock.time_s += 9
    two.turn()
    assert here.reader.lease("watch").owner == "one"
    here.clock.time_s += 5
    two.turn()
    assert here.reader.lease("watch").owner == "two"
    version = here.reader.lease("watch").version
    two.turn()
    assert here.reader.lease("watch").version == version


def leave_before(here, step, *, name):
    """Return a hook that lets an agent leave after a step was computed, right before its commit."""
    left = []

    def leave_once():
        is_now = any(row.step == step and row.owner for row in here.peer.open_operations())
        if is_now and not left:
            left.append(name)
            Hand(here.peer, name).leave()

    return leave_once


def test_build_continues_elsewhere_if_the_agent_left_as_it_was_ordered():
    with server(Overtaken(), ladder(2)) as here:
        here.peer = Server(here.store.peer(), clock=here.clock)
        hands = [hand(here, f"h{number}") for number in range(2)]
        here.build("one")
        here.store.meanwhile = leave_before(here, "send", name="h0")
        here.turn()
        (spawn,) = here.open_operations()
        assert (here.reader.agent("h0").state, spawn.due_at_s) == ("gone", here.clock.now_s() + TERMS.build_timeout_s)
        here.jobs().turn()
        served(here, hands[1])
        here.peer.stop()
        assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h1")


def test_destroy_order_waits_for_the_return_of_its_host(here):
    hands = [hand(here, f"h{number}") for number in range(2)]
    here.build("one")
    served(here, *hands)
    hands[0].leave()
    here.delete("one")
    here.turn()
    (operation,) = [row for row in here.reader.operations(most=9) if row.kind == "delete"]
    jobs = here.jobs()
    for _ in range(2):
        jobs.turn()
        here.clock.time_s += 6
    assert here.reader.operation(operation.id) == operation
    assert [order.action for order in here.reader.open_orders(["h0"], most=9)] == ["destroy"]


def test_unreadable_agent_does_not_stop_the_watch_of_others(here, capsys):
    for number in range(2):
        hand(here, f"h{number}")
    jobs = here.jobs()
    jobs.reader = UnreadableAgent(here.reader)
    pass_time(here, jobs, DOWN_TIME_S + 6)
    assert [agent.state for agent in here.reader.agents()] == ["ready", "gone"]
    assert "the row of h0 cannot be understood" in capsys.readouterr().err
    jobs.reader = here.reader
    here.clock.time_s += 5
    jobs.turn()
    assert here.reader.agent("h0").state == "gone"
