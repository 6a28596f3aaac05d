"""Shelving: the instance is saved, and offloaded at once, later or never."""

from dataclasses import replace

import pytest

from roost.errors import Conflict
from roost.model.image import Image
from roost.model.names import uuid_bytes, uuid_text
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import (
    OK,
    TERMS,
    action,
    failure,
    instance_standing,
    played_agent,
    run_until_idle,
    server,
)
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, merge_fleets

IMAGE = Image(id="debian", disk_format="raw", properties={"os_distro": "debian", "hw_machine_type": "q35"})
ONE = uuid_named("one")
NEVER, AT_ONCE = -1.0, 0.0


@pytest.fixture
def app():
    with server(None, merge_fleets(ladder(3), group("apart", "anti-affinity"))) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(3)]
        app.terms = replace(TERMS, shelved_offload_time_s=NEVER)
        yield app


def build_active(app, name="one", **request):
    app.build(name, key=name, image=IMAGE, **request)
    run_until_idle(app, *app.hands)
    assert app.status(name).status == "ACTIVE"


def shelve(app, name="one"):
    app.change(name, "shelve")
    run_until_idle(app, *app.hands)


def next_order(app, number=0):
    """Let the conductor work; return the order of a host."""
    app.turn()
    (order,) = app.hands[number].poll().orders
    return order


def test_shelved_instance_is_stopped_and_saved_and_keeps_its_allocations(app):
    build_active(app)
    operation = app.change("one", "shelve")
    assert app.status("one").task == "shelving"
    off = next_order(app)
    assert (action(off), off.limit_s) == ("power_off", 120.0)
    app.hands[0].act(off)
    save = next_order(app)
    assert (action(save), save.limit_s, save.turn) == ("save", 600.0, off.turn)
    app.hands[0].act(save)
    app.turn()
    assert instance_standing(app) == ("SHELVED", "", "h0", "", "h0")
    assert app.image("one") == Image(id=f"saved {ONE}", disk_format="raw", properties=IMAGE.properties)
    assert (app.hands[0].guests, app.reader.operation(operation.id).outcome) == ({ONE: "stopped"}, "done")
    assert app.story("one")[-1] == ("shelve.done", {"image": f"saved {ONE}"})


def test_stopped_instance_is_saved_at_once(app):
    build_active(app)
    app.power("one", "stop")
    run_until_idle(app, *app.hands)
    app.change("one", "shelve")
    assert action(next_order(app)) == "save"
    app.clock.time_s += 600
    app.hands[0].beat()
    app.turn()
    assert instance_standing(app) == ("SHUTOFF", "", "h0", "h0 did not answer within 600 s", "h0")


def test_instance_with_a_failed_start_is_stopped_before_the_save(app):
    build_active(app)
    app.power("one", "stop")
    run_until_idle(app, *app.hands)
    app.power("one", "start")
    app.hands[0].answer(next_order(app), failure("it hangs"))
    app.turn()
    assert instance_standing(app) == ("SHUTOFF", "", "h0", "it hangs", "h0")
    app.change("one", "shelve")
    assert action(next_order(app)) == "power_off"


def test_offload_time_of_zero_offloads_and_releases_at_once(app):
    app.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    build_active(app)
    shelve(app)
    assert instance_standing(app) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert (app.used()["VCPU"], app.hands[0].guests, app.open_operations()) == (0, {}, [])
    assert [kind for kind, _ in app.story("one")][-2:] == ["shelve.done", "offload.done"]
    assert app.image("one").id == f"saved {ONE}"


def test_offload_request_releases_the_host(app):
    build_active(app)
    with pytest.raises(Conflict, match="cannot offload in status ACTIVE"):
        app.change("one", "offload")
    shelve(app)
    app.change("one", "offload")
    order = next_order(app)
    assert (action(order), app.status("one").task, app.held("one")[0]) == ("destroy", "offloading", "h0")
    app.hands[0].act(order)
    app.turn()
    assert instance_standing(app) == ("SHELVED_OFFLOADED", "", "", "", None)


def test_shelved_instance_is_offloaded_after_the_offload_time(app):
    app.terms = replace(TERMS, shelved_offload_time_s=100.0)
    build_active(app)
    shelve(app)
    jobs = app.jobs()
    jobs.turn()
    run_until_idle(app, *app.hands)
    assert app.status("one").status == "SHELVED"
    app.clock.time_s += 99
    for each in app.hands:
        each.beat()
    jobs.turn()
    run_until_idle(app, *app.hands)
    assert app.status("one").status == "SHELVED"
    app.clock.time_s += 11
    jobs.turn()
    jobs.turn()
    run_until_idle(app, *app.hands)
    assert instance_standing(app) == ("SHELVED_OFFLOADED", "", "", "", None)


def test_failed_stop_leaves_the_instance_active(app):
    build_active(app)
    app.change("one", "shelve")
    app.hands[0].answer(next_order(app), failure("it hangs"))
    app.turn()
    assert instance_standing(app) == ("ACTIVE", "", "h0", "it hangs", "h0")


def test_failed_save_starts_the_instance_again(app):
    build_active(app)
    app.change("one", "shelve")
    app.hands[0].act(next_order(app))
    app.hands[0].answer(next_order(app), failure("no space"))
    restart = next_order(app)
    assert action(restart) == "power_on"
    app.hands[0].act(restart)
    app.turn()
    assert instance_standing(app) == ("ACTIVE", "", "h0", "no space", "h0")
    assert app.hands[0].guests == {ONE: "running"}


def test_failed_save_and_failed_restart_end_in_shutoff(app):
    build_active(app)
    app.change("one", "shelve")
    app.hands[0].act(next_order(app))
    app.hands[0].answer(next_order(app), failure("no space"))
    app.hands[0].answer(next_order(app), failure("no memory"))
    app.turn()
    assert instance_standing(app) == (
        "SHUTOFF",
        "",
        "h0",
        "no space; and it could not be started again: no memory",
        "h0",
    )


def test_save_without_an_image_in_its_answer_is_a_failure(app):
    build_active(app)
    app.change("one", "shelve")
    app.hands[0].act(next_order(app))
    app.hands[0].answer(next_order(app), OK)
    app.turn()
    run_until_idle(app, *app.hands)
    assert instance_standing(app) == ("ACTIVE", "", "h0", "h0 did not report the name of the saved image", "h0")


@pytest.mark.parametrize("step", ["off", "save"])
def test_status_follows_the_last_step_before_the_host_left(app, step):
    build_active(app)
    app.change("one", "shelve")
    order = next_order(app)
    if step == "save":
        app.hands[0].act(order)
        app.turn()
    app.hands[0].leave()
    app.turn()
    expected = "ACTIVE" if step == "off" else "SHUTOFF"
    assert instance_standing(app) == (expected, "", "h0", "the agent of h0 does not answer", "h0")
    assert app.open_operations() == []


def test_instance_on_a_gone_host_is_not_shelved(app):
    build_active(app)
    app.hands[0].leave()
    shelve(app)
    assert instance_standing(app) == ("ACTIVE", "", "h0", "the agent of h0 does not answer", "h0")


def test_failed_offload_leaves_the_instance_shelved(app):
    build_active(app)
    shelve(app)
    app.change("one", "offload")
    app.hands[0].answer(next_order(app), failure("it hangs"))
    app.turn()
    assert instance_standing(app) == ("SHELVED", "", "h0", "h0 could not destroy it: it hangs", "h0")


def test_offload_waits_for_a_live_host_without_limit(app):
    build_active(app)
    shelve(app)
    app.change("one", "offload")
    order = next_order(app)
    for _ in range(5):
        app.clock.time_s += 121
        app.hands[0].beat()
        app.turn()
    assert (app.status("one").task, app.held("one")[0]) == ("offloading", "h0")
    app.hands[0].act(order)
    app.turn()
    assert instance_standing(app) == ("SHELVED_OFFLOADED", "", "", "", None)


def test_host_that_left_during_the_offload_is_cleaned_on_its_return(app):
    build_active(app)
    shelve(app)
    app.change("one", "offload")
    app.turn()
    app.hands[0].leave()
    app.turn()
    assert instance_standing(app) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert app.hands[0].register().destroy == (ONE,)
    run_until_idle(app, *app.hands)
    assert (app.hands[0].guests, app.reader.agent("h0").state) == ({}, "ready")


@pytest.mark.parametrize("orders", [0, 1, 2, 3])
def test_deletion_ends_shelving_at_any_step(app, orders):
    app.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    build_active(app)
    app.change("one", "shelve")
    for _ in range(orders):
        app.hands[0].act(next_order(app))
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert instance_standing(app) == ("DELETED", "", "", "", None)
    assert (app.used()["VCPU"], app.hands[0].guests, app.open_operations()) == (0, {}, [])


def test_instance_that_boots_from_a_volume_is_offloaded_and_not_saved(app):
    build_active(app, is_bfv=True)
    shelve(app)
    assert instance_standing(app) == ("SHELVED_OFFLOADED", "", "", "", None)
    assert app.image("one") == IMAGE
    (operation, *_) = app.reader.operations_on(uuid_bytes(ONE), newest=1)
    assert [order.action for order in app.reader.orders_of(operation.id)] == ["power_off", "destroy"]
    assert uuid_text(operation.instance_uuid) == ONE


def test_offloaded_instance_leaves_its_server_group(app):
    app.terms = replace(TERMS, shelved_offload_time_s=AT_ONCE)
    build_active(app, in_group="apart", force_hosts=("h0",))
    shelve(app)
    build_active(app, "two", in_group="apart", force_hosts=("h0",))
    assert app.status("two").host == "h0"
