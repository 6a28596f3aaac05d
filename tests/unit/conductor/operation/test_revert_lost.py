"""An instance goes back from a host that is lost; what that has of it goes before it is up again."""

import pytest

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.errors import Conflict
from roost.model.names import uuid_text
from roost.model.writes import Item
from tests.support.conductors.conductors import failed, server
from tests.support.conductors.move_servers import at_rest, holders, migrations, pass_time
from tests.support.conductors.resize_servers import ask, keepers, told
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, joined

ONE = uuid_named("one")


@pytest.fixture
def here():
    """Give a server with an instance that was resized from h0 to h1, and h1 is gone."""
    hosts = [host(f"h{number}", VCPU=4, MEMORY_MB=100 - number) for number in range(3)]
    with server(None, joined(*hosts, group("g", "anti-affinity"))) as made:
        made.hands = keepers(made, "h0", "h1", "h2")
        made.build("one", in_group="g", force_hosts=("h0",))
        at_rest(made, made.hands)
        yield made


def resized(here, *, is_on=True):
    if not is_on:
        here.power("one", "stop")
        at_rest(here, here.hands)
    ask(here, "resize", "one", vcpus=3)
    at_rest(here, here.hands)
    assert told(here, "one") == ("VERIFY_RESIZE", "h1", "")


def lost(here, *, is_on=True):
    resized(here, is_on=is_on)
    here.hands["h1"].leave()
    return ask(here, "revert", "one", is_lost=True)


def states(here):
    return {name: hand.copies[ONE].state for name, hand in here.hands.items() if ONE in hand.copies}


def is_kept(here, *, state="ACTIVE", fault=""):
    """See that it is on its old host, with what it had there, and that what the lost host has is kept."""
    status = here.status("one")
    assert (status.status, status.host, status.task, status.fault) == (state, "h0", "", fault)
    assert holders(here) == {ONE: ["h0"], uuid_text(status.migration_uuid): ["h1"]}
    assert here.used()["VCPU"] == 4
    assert migrations(here, "one") == [("resize", "reverted", "h0", "h1"), ("evacuate", "finished", "h1", "h0")]
    assert here.open_operations() == []


def is_over(here):
    """See that nothing is left of the way there."""
    assert told(here, "one") == ("ACTIVE", "h0", "")
    assert (states(here), holders(here), here.used()["VCPU"]) == ({"h0": "running"}, {ONE: ["h0"]}, 1)
    assert migrations(here, "one")[-1] == ("evacuate", "confirmed", "h1", "h0")
    assert here.reader.agent("h1").state == "ready"
    assert here.open_operations() == []


def test_it_runs_on_its_old_host_and_the_lost_one_gets_rid_of_it_when_it_is_back(here):
    before = here.status("one").flavor_id
    asked = lost(here)
    at_rest(here, here.hands)
    is_kept(here)
    assert here.reader.operation(asked.id).outcome == "done"
    assert here.status("one").flavor_id == before
    assert states(here) == {"h0": "running", "h1": "running"}
    registered = here.hands["h1"].register()
    assert (registered.is_ready, registered.destroy) == (False, (ONE,))
    assert len(holders(here)) == 2
    at_rest(here, here.hands)
    is_over(here)


def test_a_host_that_comes_back_without_it_gives_back_what_was_held_there(here):
    lost(here)
    at_rest(here, here.hands)
    here.hands["h1"].copies.clear()
    here.hands["h1"].guests = {}
    assert here.hands["h1"].register().is_ready
    is_over(here)


def test_one_that_was_stopped_when_it_was_resized_stays_stopped(here):
    lost(here, is_on=False)
    at_rest(here, here.hands)
    is_kept(here, state="SHUTOFF")
    assert states(here)["h0"] == "stopped"


def test_others_of_its_group_stay_away_from_it(here):
    lost(here)
    at_rest(here, here.hands)
    here.build("two", key="two", in_group="g", force_hosts=("h0",))
    here.build("three", key="three", in_group="g", force_hosts=("h2",))
    at_rest(here, here.hands)
    assert (here.status("two").status, here.status("three").status) == ("ERROR", "ACTIVE")


def test_an_old_host_that_cannot_start_it_has_it_stopped(here):
    lost(here)
    at_rest(here, here.hands, {("h0", "power_on"): [failed("no memory")]})
    is_kept(here, state="SHUTOFF", fault="it went back to h0, and was not started there: no memory")


def test_an_old_host_that_goes_on_the_way_has_it_stopped(here):
    lost(here)
    here.hands["h0"].known = []
    here.turn()
    here.hands["h0"].leave()
    at_rest(here, here.hands)
    assert told(here, "one")[:2] == ("SHUTOFF", "h0")
    assert len(holders(here)) == 2


def test_where_its_old_host_is_away_too_it_stays(here):
    resized(here)
    for name in ("h0", "h1"):
        here.hands[name].leave()
    ask(here, "revert", "one", is_lost=True)
    at_rest(here, here.hands)
    assert told(here, "one") == ("VERIFY_RESIZE", "h1", "it cannot go back: the agent of h0 does not answer")


def test_without_being_told_that_the_host_is_lost_it_stays(here):
    resized(here)
    here.hands["h1"].leave()
    ask(here, "revert", "one")
    at_rest(here, here.hands)
    fault = "the agent of h1 does not answer; if that is off for good, `roost instance revert --lost` does without it"
    assert told(here, "one") == ("VERIFY_RESIZE", "h1", fault)


def test_a_host_whose_agent_is_there_is_not_lost(here):
    resized(here)
    with pytest.raises(Conflict, match="cannot revert as one whose host is lost: the agent of h1 is there"):
        ask(here, "revert", "one", is_lost=True)
    assert here.status("one").task == ""


def test_a_host_that_is_back_before_anything_is_done_undoes_the_move(here):
    lost(here)
    here.hands["h1"].register()
    at_rest(here, here.hands)
    assert (told(here, "one"), states(here)) == (("ACTIVE", "h0", ""), {"h0": "running"})
    assert migrations(here, "one") == [("resize", "reverted", "h0", "h1")]
    assert here.hands["h0"].most_running == {ONE: 1}


def test_the_step_is_refused_where_the_host_registers_in_the_same_moment(here, monkeypatch):
    lost(here)
    commit, store = here.store.commit, here.store

    def registered_first(items):
        if any(getattr(put.row, "step", "") == "apart" for item in items for put in item.work):
            monkeypatch.setattr(store, "commit", commit)
            row = here.reader.agent("h1")
            commit([Item(writes=(), work=(replace_row(next_version(row, state="ready")),))])
        return commit(items)

    monkeypatch.setattr(store, "commit", registered_first)
    at_rest(here, here.hands)
    assert migrations(here, "one") == [("resize", "reverted", "h0", "h1")]
    assert (told(here, "one"), states(here)) == (("ACTIVE", "h0", ""), {"h0": "running"})


def test_one_that_waits_for_its_host_to_undo_the_move_waits_no_more_when_that_is_lost(here):
    resized(here)
    first = ask(here, "revert", "one", key="first")
    at_rest(here, here.hands, {("h1", "discard"): [None]})
    here.hands["h1"].leave()
    at_rest(here, here.hands)
    assert "which is waited for" in here.status("one").fault
    assert ask(here, "revert", "one", key="second", is_lost=True).id == first.id
    at_rest(here, here.hands)
    is_kept(here)
    here.hands["h1"].known = []
    here.hands["h1"].register()
    pass_time(here, here.hands, 11)
    at_rest(here, here.hands)
    is_over(here)


@pytest.mark.parametrize("turns", [0, 1, 2, 9])
@pytest.mark.parametrize("is_back", [False, True])
def test_a_deletion_ends_it_at_any_step(here, turns, is_back):
    lost(here)
    for _ in range(turns):
        here.turn()
    here.delete("one")
    at_rest(here, here.hands)
    if is_back:
        here.hands["h1"].known = []
        here.hands["h1"].register()
        at_rest(here, here.hands)
        assert states(here) == {}
    assert here.status("one").status == "DELETED"
    assert (holders(here), here.open_operations()) == ({}, [])
