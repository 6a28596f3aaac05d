"""Periodic jobs: one process does them, and who falls silent is given up."""

import pytest

from tests.building import ladder
from tests.conducting import DOWN_TIME_S, hand, served, server
from tests.worlds import wish


@pytest.fixture
def here():
    with server(None, ladder(2)) as made:
        yield made


def is_up(here, name):
    decision = here.run(lambda _current: here.roost.decide(wish(force_hosts=(name,)), dry_run=True))
    return decision.is_granted


def test_who_was_not_heard_for_too_long_is_down_and_up_again_when_it_has_registered(here):
    h0, h1 = hand(here, "h0"), hand(here, "h1")
    jobs = here.jobs()
    here.clock.time_s += DOWN_TIME_S
    h1.beat()
    jobs.turn()
    assert [agent.state for agent in here.reader.agents()] == ["ready", "ready"]
    heard_s = here.reader.agent("h0").heard_at_s
    here.clock.time_s += 6
    jobs.turn()
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
    here.clock.time_s += DOWN_TIME_S + 1
    h1.beat()
    jobs.turn()
    served(here, h1)
    assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h1")


def test_silence_counts_from_the_start_of_the_server(here):
    hand(here, "h0")
    here.clock.time_s += 1000
    jobs = here.jobs("after a restart")
    jobs.turn()
    here.clock.time_s += DOWN_TIME_S
    jobs.turn()
    assert here.reader.agent("h0").state == "ready"
    here.clock.time_s += 6
    jobs.turn()
    assert here.reader.agent("h0").state == "gone"


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
