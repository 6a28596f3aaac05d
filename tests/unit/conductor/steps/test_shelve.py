"""An instance is shelved: saved, and off its host at once, later or never."""

from dataclasses import replace

import pytest

from roost.errors import Conflict
from roost.model.image import Image
from roost.model.names import uuid_bytes, uuid_text
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import OK, TERMS, action, failed, hand, served, server, standing
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, joined

IMAGE = Image(id="debian", disk_format="raw", properties={"os_distro": "debian", "hw_machine_type": "q35"})
ONE = uuid_named("one")
NEVER, AT_ONCE = -1.0, 0.0


@pytest.fixture
def here():
    with server(None, joined(ladder(3), group("apart", "anti-affinity"))) as made:
        made.hands = [hand(made, f"h{number}") for number in range(3)]
        made.terms = replace(TERMS, shelved_offload_time_s=NEVER)
        yield made


def running(here, name="one", **request):
    here.build(name, key=name, image=IMAGE, **request)
    served(here, *here.hands)
    assert here.status(name).status == "ACTIVE"


def shelved(here, name="one"):
    here.change(name, "shelve")
    served(here, *here.hands)


def next_order(here, number=0):
    """Let the conductor work; give the order that a host got."""
    here.turn()
    (order,) = here.hands[number].poll().orders
    return order


def test_it_is_stopped_saved_and_keeps_what_it_holds(here):
    running(here)
    asked = here.change("one", "shelve")
    assert here.status("one").task == "shelving"
    off = next_order(here)
    assert (action(off), off.limit_s) == ("power_off", 120.0)
    here.hands[0].act(off)
    save = next_order(here)
    assert (action(save), save.limit_s, save.turn) == ("save", 600.0, off.turn)
    here.hands[0].act(save)
    here.turn()
    assert standing(here) == ("SHELVED", "", "h0", "", "h0")
    assert here.image("one") == Image(id=f"saved {ONE}", disk_format="raw", properties=IMAGE.properties)
    assert (here.hands[0].guests, here.reader.operation(asked.id).outcome) == ({ONE: "stopped"}, "done")
    assert here.story("one")[-1] == ("shelve.done", {"image": f"saved {ONE}"})


def test_one_that_is_stopped_is_saved_at_once(here):
    running(here)
    here.power("one", "stop")
    served(here, *here.hands)
    here.change("one", "shelve")
    assert action(next_order(here)) == "save"
    here.clock.time_s += 600
    here.hands[0].beat()
    here.turn()
    assert standing(here) == ("SHUTOFF", "", "h0", "h0 did not answer within 600 s", "h0")


def test_one_that_may_have_been_started_too_late_is_stopped_first(here):
    running(here)
    here.power("one", "stop")
    served(here, *here.hands)
    here.power("one", "start")
    here.hands[0].answer(next_order(here), failed("it hangs"))
    here.turn()
    assert standing(here) == ("SHUTOFF", "", "h0", "it hangs", "h0")
    here.change("one", "shelve")
    assert action(next_order(here)) == "power_off"


def test_by_default_it_leaves_its_host_at_once_and_gives_back_what_it_holds(here):
    here.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    running(here)
    shelved(here)
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert (here.used()["VCPU"], here.hands[0].guests, here.open_operations()) == (0, {}, [])
    assert [kind for kind, _ in here.story("one")][-2:] == ["shelve.done", "offload.done"]
    assert here.image("one").id == f"saved {ONE}"


def test_it_leaves_its_host_when_that_is_asked(here):
    running(here)
    with pytest.raises(Conflict, match="cannot offload in status ACTIVE"):
        here.change("one", "offload")
    shelved(here)
    here.change("one", "offload")
    order = next_order(here)
    assert (action(order), here.status("one").task, here.held("one")[0]) == ("destroy", "offloading", "h0")
    here.hands[0].act(order)
    here.turn()
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)


def test_it_leaves_its_host_by_itself_after_a_while(here):
    here.terms = replace(TERMS, shelved_offload_time_s=100.0)
    running(here)
    shelved(here)
    jobs = here.jobs()
    jobs.turn()
    served(here, *here.hands)
    assert here.status("one").status == "SHELVED"
    here.clock.time_s += 99
    for each in here.hands:
        each.beat()
    jobs.turn()
    served(here, *here.hands)
    assert here.status("one").status == "SHELVED"
    here.clock.time_s += 11
    jobs.turn()
    jobs.turn()
    served(here, *here.hands)
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)


def test_where_it_cannot_be_stopped_it_is_as_it_was(here):
    running(here)
    here.change("one", "shelve")
    here.hands[0].answer(next_order(here), failed("it hangs"))
    here.turn()
    assert standing(here) == ("ACTIVE", "", "h0", "it hangs", "h0")


def test_where_it_cannot_be_saved_it_runs_again(here):
    running(here)
    here.change("one", "shelve")
    here.hands[0].act(next_order(here))
    here.hands[0].answer(next_order(here), failed("no space"))
    back = next_order(here)
    assert action(back) == "power_on"
    here.hands[0].act(back)
    here.turn()
    assert standing(here) == ("ACTIVE", "", "h0", "no space", "h0")
    assert here.hands[0].guests == {ONE: "running"}


def test_where_it_cannot_be_started_again_either_it_is_stopped(here):
    running(here)
    here.change("one", "shelve")
    here.hands[0].act(next_order(here))
    here.hands[0].answer(next_order(here), failed("no space"))
    here.hands[0].answer(next_order(here), failed("no memory"))
    here.turn()
    assert standing(here) == ("SHUTOFF", "", "h0", "no space; and it could not be started again: no memory", "h0")


def test_a_host_that_does_not_say_what_it_saved_has_saved_nothing(here):
    running(here)
    here.change("one", "shelve")
    here.hands[0].act(next_order(here))
    here.hands[0].answer(next_order(here), OK)
    here.turn()
    served(here, *here.hands)
    assert standing(here) == ("ACTIVE", "", "h0", "h0 did not say what it was saved as", "h0")


@pytest.mark.parametrize("step", ["off", "save"])
def test_a_host_that_goes_leaves_it_as_far_as_it_came(here, step):
    running(here)
    here.change("one", "shelve")
    order = next_order(here)
    if step == "save":
        here.hands[0].act(order)
        here.turn()
    here.hands[0].leave()
    here.turn()
    expected = "ACTIVE" if step == "off" else "SHUTOFF"
    assert standing(here) == (expected, "", "h0", "the agent of h0 does not answer", "h0")
    assert here.open_operations() == []


def test_a_host_that_is_away_has_nothing_shelved(here):
    running(here)
    here.hands[0].leave()
    shelved(here)
    assert standing(here) == ("ACTIVE", "", "h0", "the agent of h0 does not answer", "h0")


def test_a_host_that_cannot_get_rid_of_it_keeps_it(here):
    running(here)
    shelved(here)
    here.change("one", "offload")
    here.hands[0].answer(next_order(here), failed("it hangs"))
    here.turn()
    assert standing(here) == ("SHELVED", "", "h0", "h0 could not destroy it: it hangs", "h0")


def test_a_host_that_is_alive_is_waited_for_however_long_it_takes(here):
    running(here)
    shelved(here)
    here.change("one", "offload")
    order = next_order(here)
    for _ in range(5):
        here.clock.time_s += 121
        here.hands[0].beat()
        here.turn()
    assert (here.status("one").task, here.held("one")[0]) == ("offloading", "h0")
    here.hands[0].act(order)
    here.turn()
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)


def test_a_host_that_is_given_up_gets_rid_of_it_on_its_return(here):
    running(here)
    shelved(here)
    here.change("one", "offload")
    here.turn()
    here.hands[0].leave()
    here.turn()
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert here.hands[0].register().destroy == (ONE,)
    served(here, *here.hands)
    assert (here.hands[0].guests, here.reader.agent("h0").state) == ({}, "ready")


@pytest.mark.parametrize("orders", [0, 1, 2, 3])
def test_a_deletion_ends_it_at_any_step(here, orders):
    here.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    running(here)
    here.change("one", "shelve")
    for _ in range(orders):
        here.hands[0].act(next_order(here))
    here.delete("one")
    served(here, *here.hands)
    assert standing(here) == ("DELETED", "", "", "", None)
    assert (here.used()["VCPU"], here.hands[0].guests, here.open_operations()) == (0, {}, [])


def test_a_disk_that_is_a_volume_is_not_saved(here):
    running(here, is_bfv=True)
    shelved(here)
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert here.image("one") == IMAGE
    (operation, *_) = here.reader.operations_on(uuid_bytes(ONE), newest=1)
    assert [order.action for order in here.reader.orders_of(operation.id)] == ["power_off", "destroy"]
    assert uuid_text(operation.instance_uuid) == ONE


def test_it_leaves_its_server_group_with_its_host(here):
    here.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    running(here, in_group="apart", force_hosts=("h0",))
    shelved(here)
    running(here, "two", in_group="apart", force_hosts=("h0",))
    assert here.status("two").host == "h0"
