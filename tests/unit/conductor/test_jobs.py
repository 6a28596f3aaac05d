"""Periodic jobs: one process does them, and who falls silent is given up."""

import pytest

from roost.errors import StoreBroken, Unavailable
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import DOWN_TIME_S, TERMS, Hand, Server, hand, served, server
from tests.support.databases.racing_stores import Overtaken
from tests.support.fleets.worlds import wish


class Torn:
    """A reader for which the agent of h0 cannot be understood."""

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
    with server(None, ladder(2)) as made:
        yield made


def fails(_items):
    """Be a database that is away."""
    raise Unavailable("the database is away")


def is_up(here, name):
    decision = here.run(lambda _current: here.roost.decide(wish(force_hosts=(name,)), dry_run=True))
    return decision.is_granted


def pass_time(here, jobs, seconds, *heard):
    """Let time pass, six seconds at once, while a process does its jobs and some agents are heard."""
    for _ in range(0, int(seconds), 6):
        here.clock.time_s += 6
        for each in heard:
            each.beat()
        jobs.turn()


def test_who_was_not_heard_for_too_long_is_down_and_up_again_when_it_has_registered(here):
    h0, h1 = hand(here, "h0"), hand(here, "h1")
    jobs = here.jobs()
    pass_time(here, jobs, DOWN_TIME_S, h1)
    assert [agent.state for agent in here.reader.agents()] == ["ready", "ready"]
    heard_s = here.reader.agent("h0").heard_at_s
    pass_time(here, jobs, 6, h1)
    assert [agent.state for agent in here.reader.agents()] == ["gone", "ready"]
    assert (is_up(here, "h0"), is_up(here, "h1")) == (True, True)  # Who is forced goes there all the same.
    chosen = here.run(lambda _current: here.roost.decide(wish(), dry_run=True))
    assert [pick.host for pick in chosen.picks] == ["h1"]
    assert here.roost.state.hosts.facts[0].reported_at_s == heard_s
    assert h0.poll().unknown == ("h0",)
    h0.register()
    chosen = here.run(lambda _current: here.roost.decide(wish(), dry_run=True))
    assert [pick.host for pick in chosen.picks] == ["h0"]


def test_whoever_waits_for_it_goes_on_elsewhere(here):
    h0, h1 = hand(here, "h0"), hand(here, "h1")
    jobs = here.jobs()
    here.build("one")
    here.turn()
    h0.poll()
    pass_time(here, jobs, DOWN_TIME_S + 6, h1)
    served(here, h1)
    assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h1")


def test_silence_counts_from_the_start_of_the_server(here):
    hand(here, "h0")
    here.clock.time_s += 1000
    jobs = here.jobs("after a restart")
    jobs.turn()
    pass_time(here, jobs, DOWN_TIME_S)
    assert here.reader.agent("h0").state == "ready"
    pass_time(here, jobs, 6)
    assert here.reader.agent("h0").state == "gone"


def test_silence_counts_anew_after_a_time_in_which_the_database_was_away(here, monkeypatch):
    hand(here, "h0")
    jobs = here.jobs()
    pass_time(here, jobs, DOWN_TIME_S - 12)
    with monkeypatch.context() as away:
        away.setattr(here.store, "commit", fails)
        for _ in range(4):
            with pytest.raises(Unavailable):
                pass_time(here, jobs, 6)
    pass_time(here, jobs, DOWN_TIME_S + 6)
    assert here.reader.agent("h0").state == "ready"
    pass_time(here, jobs, 6)
    assert here.reader.agent("h0").state == "gone"


def test_a_process_that_agents_do_not_ask_gives_up_nobody(here):
    hand(here, "h0")
    pass_time(here, here.jobs("conductor", is_hearing=False), DOWN_TIME_S + 6)
    assert (here.reader.agent("h0").state, here.reader.lease("watch")) == ("ready", None)


def test_one_process_does_a_job_until_it_stops_and_then_another(here):
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


def leaving_before(here, step, *, name):
    """Let an agent leave right before a step is committed that was looked for while it was there."""
    left = []

    def meanwhile():
        is_now = any(row.step == step and row.owner for row in here.peer.open_operations())
        if is_now and not left:
            left.append(name)
            Hand(here.peer, name).leave()

    return meanwhile


def test_an_order_to_an_agent_that_was_given_up_at_the_same_moment_is_not_waited_for():
    with server(Overtaken(), ladder(2)) as here:
        here.peer = Server(here.store.peer(), clock=here.clock)
        hands = [hand(here, f"h{number}") for number in range(2)]
        here.build("one")
        here.store.meanwhile = leaving_before(here, "send", name="h0")
        here.turn()
        (spawn,) = here.open_operations()
        assert (here.reader.agent("h0").state, spawn.due_at_s) == ("gone", here.clock.now_s() + TERMS.build_timeout_s)
        here.jobs().turn()
        served(here, hands[1])
        here.peer.stop()
        assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h1")


def test_what_is_to_be_destroyed_waits_for_the_return_of_its_host(here):
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


def test_an_agent_that_cannot_be_given_up_keeps_nobody_else_from_it(here, capsys):
    for number in range(2):
        hand(here, f"h{number}")
    jobs = here.jobs()
    jobs.reader = Torn(here.reader)
    pass_time(here, jobs, DOWN_TIME_S + 6)
    assert [agent.state for agent in here.reader.agents()] == ["ready", "gone"]
    assert "the row of h0 cannot be understood" in capsys.readouterr().err
    jobs.reader = here.reader
    here.clock.time_s += 5
    jobs.turn()
    assert here.reader.agent("h0").state == "gone"
