"""Rebuilds: the instance gets a new disk from an image, on its host and with its allocations."""

import pytest

from roost.conductor.operation.stored_request import image_of, request_of
from roost.errors import BadRequest, Conflict
from roost.fleet.host_writes import ServiceChange, apply_service_change, writes_of_facts
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.placement.write_plan import Plan
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import action, instance_state, played_agent, run_until_idle, server
from tests.support.conductors.conductors import failure as failed
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, merge_fleets, settings_of

OLD, NEW = Image(id="old", disk_format="raw"), Image(id="new", disk_format="raw")
ARM = Image(id="arm", properties={"hw_architecture": "aarch64"})
ONE = uuid_named("one")
INTEL = HostFacts(supported_instances=(("x86_64", "kvm", "hvm"),))


@pytest.fixture
def app():
    with server(None, ladder(2)) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(2)]
        yield app


def build_active(app, **request):
    app.build("one", image=OLD, **request)
    run_until_idle(app, *app.hands)
    assert app.status("one").status == "ACTIVE"


def images(app):
    """Return the image of the instance, and that of its stored request."""
    read = lambda current, act: act(current.store.document, app.status("one"))  # noqa: E731  # used twice
    return app.run(lambda current: (read(current, image_of).id, read(current, request_of).image.id))


def next_order(app):
    app.turn()
    (order,) = app.hands[0].poll().orders
    return order


def test_rebuild_replaces_the_image(app):
    build_active(app)
    operation = app.change("one", "rebuild", image=NEW)
    assert app.status("one").task == "rebuilding"
    order = next_order(app)
    guest = order.act.guest
    assert (action(order), order.limit_s, guest.image, guest.is_on, guest.node) == ("rebuild", 600.0, NEW, True, "h0")
    assert guest.allocations == {uuid_named("h0"): {"VCPU": 1, "MEMORY_MB": 1}}
    assert images(app) == ("old", "old")
    app.hands[0].act(order)
    app.turn()
    assert instance_state(app) == ("ACTIVE", "", "", "h0")
    assert (images(app), app.reader.operation(operation.id).outcome) == (("new", "new"), "done")
    assert app.story("one")[-1] == ("rebuild.done", {})


def test_rebuild_without_an_image_keeps_the_old_one(app):
    build_active(app)
    app.change("one", "rebuild")
    assert next_order(app).act.guest.image == OLD
    run_until_idle(app, *app.hands)
    assert images(app) == ("old", "old")


def test_stopped_instance_stays_stopped(app):
    build_active(app)
    app.power("one", "stop")
    run_until_idle(app, *app.hands)
    app.change("one", "rebuild", image=NEW)
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("SHUTOFF", "", "", "h0")
    assert app.hands[0].guests == {ONE: "stopped"}


def test_failed_rebuild_ends_in_error_and_can_be_repeated(app):
    build_active(app)
    app.change("one", "rebuild", image=NEW)
    app.hands[0].answer(next_order(app), failed("no such image"))
    app.turn()
    assert instance_state(app) == ("ERROR", "", "no such image", "h0")
    assert images(app) == ("old", "old")
    app.clock.time_s += 1
    app.change("one", "rebuild", image=NEW)
    run_until_idle(app, *app.hands)
    assert instance_state(app) == ("ACTIVE", "", "", "h0")


@pytest.mark.parametrize("failure", ["is away", "is silent", "goes"])
def test_rebuild_fails_if_the_host_does_not_answer(app, failure):
    build_active(app)
    if failure == "is away":
        app.hands[0].leave()
    app.change("one", "rebuild", image=NEW)
    app.turn()
    if failure == "is silent":
        app.clock.time_s += 600
        app.hands[0].beat()
    elif failure == "goes":
        app.hands[0].leave()
    app.turn()
    no_answer = "the agent of h0 does not answer"
    assert (
        instance_state(app)
        == {
            "is away": ("ACTIVE", "", no_answer, "h0"),
            "is silent": ("ERROR", "", "h0 did not answer within 600 s", "h0"),
            "goes": ("ERROR", "", no_answer, "h0"),
        }[failure]
    )
    assert app.open_operations() == []


def test_fault_spells_the_host_as_its_agent_does():
    with server(None, merge_fleets(host("Rack-1"))) as app:
        app.hands = [played_agent(app, "Rack-1")]
        build_active(app)
        app.change("one", "rebuild", image=NEW)
        app.turn()
        app.clock.time_s += 600
        app.hands[0].beat()
        app.turn()
        assert app.status("one").fault == "Rack-1 did not answer within 600 s"


def test_new_image_must_pass_the_filters_on_the_host():
    fleet = merge_fleets(host("h0", facts=INTEL))
    with server(None, fleet, settings=settings_of(enabled_filters=["compute", "image_properties"])) as app:
        app.hands = [played_agent(app, "h0")]
        build_active(app)
        with pytest.raises(Conflict, match="cannot be rebuilt from this image: h0: image_properties: "):
            app.change("one", "rebuild", image=ARM)
        assert instance_state(app) == ("ACTIVE", "", "", "h0")
        assert app.open_operations() == []
        app.change("one", "rebuild", image=NEW)
        run_until_idle(app, *app.hands)
        assert images(app) == ("new", "new")


def test_rebuild_applies_only_filters_that_run_on_rebuilds():
    fleet = merge_fleets(host("h0", VCPU=1, MEMORY_MB=1, facts=INTEL))
    with server(None, fleet) as app:
        app.hands = [played_agent(app, "h0")]
        build_active(app)
        app.run(disable_host)
        app.change("one", "rebuild", image=NEW)
        run_until_idle(app, *app.hands)
        assert images(app) == ("new", "new")


def disable_host(current):
    """Disable the only host for new instances."""
    facts = apply_service_change(current.state, [0], ServiceChange(is_disabled=True))
    return Plan(answer=None, writes=writes_of_facts(current.state, [0], facts))


def test_instance_that_boots_from_a_volume_keeps_its_image(app):
    build_active(app, is_bfv=True)
    with pytest.raises(BadRequest, match="boots from a volume: it cannot have another image"):
        app.change("one", "rebuild", image=NEW)


@pytest.mark.parametrize("turns", [0, 1])
def test_deletion_ends_the_rebuild_at_any_step(app, turns):
    build_active(app)
    app.change("one", "rebuild", image=NEW)
    for _ in range(turns):
        app.turn()
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert app.status("one").status == "DELETED"
    assert (app.used()["VCPU"], app.hands[0].guests, app.open_operations()) == (0, {}, [])
