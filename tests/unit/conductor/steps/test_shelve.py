"""Shelving: the instance is saved, and offloaded at once, later or never."""

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
    with server(None, joined(ladder(3), group("apart", "anti-affinity"))) as here:
        here.hands = [hand(here, f"h{number}") for number in range(3)]
        here.terms = replace(TERMS, shelved_offload_time_s=NEVER)
        yield here


def build_active(here, name="one", **request):
    here.build(name, key=name, image=IMAGE, **request)
    served(here, *here.hands)
    assert here.status(name).status == "ACTIVE"


def shelve(here, name="one"):
    here.change(name, "shelve")
    served(here, *here.hands)


def next_order(here, number=0):
    """Let the conductor work; return the order of a host."""
    here.turn()
    (order,) = here.hands[number].poll().orders
    return order


def test_shelved_instance_is_stopped_and_saved_and_keeps_its_allocations(here):
    build_active(here)
    operation = here.change("one", "shelve")
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
    assert (here.hands[0].guests, here.reader.operation(operation.id).outcome) == ({ONE: "stopped"}, "done")
    assert here.story("one")[-1] == ("shelve.done", {"image": f"saved {ONE}"})


def test_stopped_instance_is_saved_at_once(here):
    build_active(here)
    here.power("one", "stop")
    served(here, *here.hands)
    here.change("one", "shelve")
    assert action(next_order(here)) == "save"
    here.clock.time_s += 600
    here.hands[0].beat()
    here.turn()
    assert standing(here) == ("SHUTOFF", "", "h0", "h0 did not answer within 600 s", "h0")


def test_instance_whose_start_failed_is_stopped_before_the_save(here):
    build_active(here)
    here.power("one", "stop")
    served(here, *here.hands)
    here.power("one", "start")
    here.hands[0].answer(next_order(here), failed("it hangs"))
    here.turn()
    assert standing(here) == ("SHUTOFF", "", "h0", "it hangs", "h0")
    here.change("one", "shelve")
    assert action(next_order(here)) == "power_off"


def test_offload_time_of_zero_offloads_and_releases_at_once(here):
    here.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    build_active(here)
    shelve(here)
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert (here.used()["VCPU"], here.hands[0].guests, here.open_operations()) == (0, {}, [])
    assert [kind for kind, _ in here.story("one")][-2:] == ["shelve.done", "offload.done"]
    assert here.image("one").id == f"saved {ONE}"


def test_offload_request_releases_the_host(here):
    build_active(here)
    with pytest.raises(Conflict, match="cannot offload in status ACTIVE"):
        here.change("one", "offload")
    shelve(here)
    here.change("one", "offload")
    order = next_order(here)
    assert (action(order), here.status("one").task, here.held("one")[0]) == ("destroy", "offloading", "h0")
    here.hands[0].act(order)
    here.turn()
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)


def test_shelved_instance_is_offloaded_after_the_offload_time(here):
    here.terms = replace(TERMS, shelved_offload_time_s=100.0)
    build_active(here)
    shelve(here)
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


def test_failed_stop_leaves_the_instance_active(here):
    build_active(here)
    here.change("one", "shelve")
    here.hands[0].answer(next_order(here), failed("it hangs"))
    here.turn()
    assert standing(here) == ("ACTIVE", "", "h0", "it hangs", "h0")


def test_failed_save_starts_the_instance_again(here):
    build_active(here)
    here.change("one", "shelve")
    here.hands[0].act(next_order(here))
    here.hands[0].answer(next_order(here), failed("no space"))
    restart = next_order(here)
    assert action(restart) == "power_on"
    here.hands[0].act(restart)
    here.turn()
    assert standing(here) == ("ACTIVE", "", "h0", "no space", "h0")
    assert here.hands[0].guests == {ONE: "running"}


def test_failed_save_and_failed_restart_end_in_shutoff(here):
    build_active(here)
    here.change("one", "shelve")
    here.hands[0].act(next_order(here))
    here.hands[0].answer(next_order(here), failed("no space"))
    here.hands[0].answer(next_order(here), failed("no memory"))
    here.turn()
    assert standing(here) == ("SHUTOFF", "", "h0", "no space; and it could not be started again: no memory", "h0")


def test_save_without_an_image_in_its_answer_is_a_failure(here):
    build_active(here)
    here.change("one", "shelve")
    here.hands[0].act(next_order(here))
    here.hands[0].answer(next_order(here), OK)
    here.turn()
    served(here, *here.hands)
    assert standing(here) == ("ACTIVE", "", "h0", "h0 did not say what it was saved as", "h0")


@pytest.mark.parametrize("step", ["off", "save"])
def test_status_follows_the_last_step_before_the_host_left(here, step):
    build_active(here)
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


def test_instance_on_a_gone_host_is_not_shelved(here):
    build_active(here)
    here.hands[0].leave()
    shelve(here)
    assert standing(here) == ("ACTIVE", "", "h0", "the agent of h0 does not answer", "h0")


def test_failed_offload_leaves_the_instance_shelved(here):
    build_active(here)
    shelve(here)
    here.change("one", "offload")
    here.hands[0].answer(next_order(here), failed("it hangs"))
    here.turn()
    assert standing(here) == ("SHELVED", "", "h0", "h0 could not destroy it: it hangs", "h0")


def test_offload_waits_for_a_live_host_without_limit(here):
    build_active(here)
    shelve(here)
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


def test_host_that_left_during_the_offload_is_cleaned_on_its_return(here):
    build_active(here)
    shelve(here)
    here.change("one", "offload")
    here.turn()
    here.hands[0].leave()
    here.turn()
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert here.hands[0].register().destroy == (ONE,)
    served(here, *here.hands)
    assert (here.hands[0].guests, here.reader.agent("h0").state) == ({}, "ready")


@pytest.mark.parametrize("orders", [0, 1, 2, 3])
def test_deletion_ends_shelving_at_any_step(here, orders):
    here.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    build_active(here)
    here.change("one", "shelve")
    for _ in range(orders):
        here.hands[0].act(next_order(here))
    here.delete("one")
    served(here, *here.hands)
    assert standing(here) == ("DELETED", "", "", "", None)
    assert (here.used()["VCPU"], here.hands[0].guests, here.open_operations()) == (0, {}, [])


def test_instance_that_boots_from_a_volume_is_offloaded_and_not_saved(here):
    build_active(here, is_bfv=True)
    shelve(here)
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert here.image("one") == IMAGE
    (operation, *_) = here.reader.operations_on(uuid_bytes(ONE), newest=1)
    assert [order.action for order in here.reader.orders_of(operation.id)] == ["power_off", "destroy"]
    assert uuid_text(operation.instance_uuid) == ONE


def test_offloaded_instance_leaves_its_server_group(here):
    here.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    build_active(here, in_group="apart", force_hosts=("h0",))
    shelve(here)
    build_active(here, "two", in_group="apart", force_hosts=("h0",))
    assert here.status("two").host == "h0"
