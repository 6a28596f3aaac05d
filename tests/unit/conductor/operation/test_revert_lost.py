"""Reverts of moves to a lost host. That host destroys its guest before it is up again."""

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
    """Yield a server with an instance on h0, and agents of three hosts."""
    hosts = [host(f"h{number}", VCPU=4, MEMORY_MB=100 - number) for number in range(3)]
    with server(None, joined(*hosts, group("g", "anti-affinity"))) as here:
        here.hands = keepers(here, "h0", "h1", "h2")
        here.build("one", in_group="g", force_hosts=("h0",))
        at_rest(here, here.hands)
        yield here


def resize(here, *, is_on=True):
    if not is_on:
        here.power("one", "stop")
        at_rest(here, here.hands)
    ask(here, "resize", "one", vcpus=3)
    at_rest(here, here.hands)
    assert told(here, "one") == ("VERIFY_RESIZE", "h1", "")


def revert_from_lost_host(here, *, is_on=True):
    resize(here, is_on=is_on)
    here.hands["h1"].leave()
    return ask(here, "revert", "one", is_lost=True)


def states(here):
    return {name: hand.copies[ONE].state for name, hand in here.hands.items() if ONE in hand.copies}


def check_reverted(here, *, state="ACTIVE", fault=""):
    """Check that the instance is on its old host, and that its migration holds the lost host."""
    status = here.status("one")
    assert (status.status, status.host, status.task, status.fault) == (state, "h0", "", fault)
    assert holders(here) == {ONE: ["h0"], uuid_text(status.migration_uuid): ["h1"]}
    assert here.used()["VCPU"] == 4
    assert migrations(here, "one") == [("resize", "reverted", "h0", "h1"), ("evacuate", "finished", "h1", "h0")]
    assert here.open_operations() == []


def check_cleaned_up(here):
    """Check that nothing is left of the move."""
    assert told(here, "one") == ("ACTIVE", "h0", "")
    assert (states(here), holders(here), here.used()["VCPU"]) == ({"h0": "running"}, {ONE: ["h0"]}, 1)
    assert migrations(here, "one")[-1] == ("evacuate", "confirmed", "h1", "h0")
    assert here.reader.agent("h1").state == "ready"
    assert here.open_operations() == []


def test_instance_reverts_and_the_lost_host_is_cleaned_on_its_return(here):
    old_flavor_id = here.status("one").flavor_id
    operation = revert_from_lost_host(here)
    at_rest(here, here.hands)
    check_reverted(here)
    assert here.reader.operation(operation.id).outcome == "done"
    assert here.status("one").flavor_id == old_flavor_id
    assert states(here) == {"h0": "running", "h1": "running"}
    reply = here.hands["h1"].register()
    assert (reply.is_ready, reply.destroy) == (False, (ONE,))
    assert len(holders(here)) == 2
    at_rest(here, here.hands)
    check_cleaned_up(here)


def test_lost_host_that_returns_without_the_guest_is_released(here):
    revert_from_lost_host(here)
    at_rest(here, here.hands)
    here.hands["h1"].copies.clear()
    here.hands["h1"].guests = {}
    assert here.hands["h1"].register().is_ready
    check_cleaned_up(here)


def test_stopped_instance_stays_stopped_after_the_revert(here):
    revert_from_lost_host(here, is_on=False)
    at_rest(here, here.hands)
    check_reverted(here, state="SHUTOFF")
    assert states(here)["h0"] == "stopped"


def test_anti_affinity_members_stay_apart_after_the_revert(here):
    revert_from_lost_host(here)
    at_rest(here, here.hands)
    here.build("two", key="two", in_group="g", force_hosts=("h0",))
    here.build("three", key="three", in_group="g", force_hosts=("h2",))
    at_rest(here, here.hands)
    assert (here.status("two").status, here.status("three").status) == ("ERROR", "ACTIVE")


def test_instance_is_shutoff_if_the_old_host_cannot_start_it(here):
    revert_from_lost_host(here)
    at_rest(here, here.hands, {("h0", "power_on"): [failed("no memory")]})
    check_reverted(here, state="SHUTOFF", fault="it went back to h0, and was not started there: no memory")


def test_instance_is_shutoff_if_the_old_host_leaves_during_the_revert(here):
    revert_from_lost_host(here)
    here.hands["h0"].known = []
    here.turn()
    here.hands["h0"].leave()
    at_rest(here, here.hands)
    assert told(here, "one")[:2] == ("SHUTOFF", "h0")
    assert len(holders(here)) == 2


def test_revert_fails_if_the_old_host_is_gone_too(here):
    resize(here)
    for name in ("h0", "h1"):
        here.hands[name].leave()
    ask(here, "revert", "one", is_lost=True)
    at_rest(here, here.hands)
    assert told(here, "one") == ("VERIFY_RESIZE", "h1", "it cannot go back: the agent of h0 does not answer")


def test_revert_from_a_gone_host_fails_without_is_lost(here):
    resize(here)
    here.hands["h1"].leave()
    ask(here, "revert", "one")
    at_rest(here, here.hands)
    fault = "the agent of h1 does not answer; if that is off for good, `roost instance revert --lost` does without it"
    assert told(here, "one") == ("VERIFY_RESIZE", "h1", fault)


def test_host_with_a_live_agent_is_not_accepted_as_lost(here):
    resize(here)
    with pytest.raises(Conflict, match="cannot revert as one whose host is lost: the agent of h1 is there"):
        ask(here, "revert", "one", is_lost=True)
    assert here.status("one").task == ""


def test_lost_host_that_returns_before_the_first_step_undoes_the_move(here):
    revert_from_lost_host(here)
    here.hands["h1"].register()
    at_rest(here, here.hands)
    assert (told(here, "one"), states(here)) == (("ACTIVE", "h0", ""), {"h0": "running"})
    assert migrations(here, "one") == [("resize", "reverted", "h0", "h1")]
    assert here.hands["h0"].most_running == {ONE: 1}


def test_step_is_refused_if_the_lost_host_registers_concurrently(here, monkeypatch):
    revert_from_lost_host(here)
    commit, store = here.store.commit, here.store

    def register_first(items):
        if any(getattr(put.row, "step", "") == "apart" for item in items for put in item.work):
            monkeypatch.setattr(store, "commit", commit)
            row = here.reader.agent("h1")
            commit([Item(writes=(), work=(replace_row(next_version(row, state="ready")),))])
        return commit(items)

    monkeypatch.setattr(store, "commit", register_first)
    at_rest(here, here.hands)
    assert migrations(here, "one") == [("resize", "reverted", "h0", "h1")]
    assert (told(here, "one"), states(here)) == (("ACTIVE", "h0", ""), {"h0": "running"})


def test_waiting_revert_continues_once_its_host_is_declared_lost(here):
    resize(here)
    first = ask(here, "revert", "one", key="first")
    at_rest(here, here.hands, {("h1", "discard"): [None]})
    here.hands["h1"].leave()
    at_rest(here, here.hands)
    assert "which is waited for" in here.status("one").fault
    assert ask(here, "revert", "one", key="second", is_lost=True).id == first.id
    at_rest(here, here.hands)
    check_reverted(here)
    here.hands["h1"].known = []
    here.hands["h1"].register()
    pass_time(here, here.hands, 11)
    at_rest(here, here.hands)
    check_cleaned_up(here)


@pytest.mark.parametrize("turns", [0, 1, 2, 9])
@pytest.mark.parametrize("is_back", [False, True])
def test_deletion_ends_the_revert_at_any_step(here, turns, is_back):
    revert_from_lost_host(here)
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
