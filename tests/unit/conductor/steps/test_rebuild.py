"""Rebuilds: the instance gets a new disk from an image, on its host and with its allocations."""

import pytest

from roost.conductor.operation.stored_request import image_of, request_of
from roost.errors import BadRequest, Conflict
from roost.fleet.host_writes import ServiceChange, apply_service_change, writes_of_facts
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.placement.write_plan import Plan
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import action, failed, hand, looks, served, server
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, joined, settings_of

OLD, NEW = Image(id="old", disk_format="raw"), Image(id="new", disk_format="raw")
ARM = Image(id="arm", properties={"hw_architecture": "aarch64"})
ONE = uuid_named("one")
INTEL = HostFacts(supported_instances=(("x86_64", "kvm", "hvm"),))


@pytest.fixture
def here():
    with server(None, ladder(2)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(2)]
        yield here


def build_active(here, **request):
    here.build("one", image=OLD, **request)
    served(here, *here.hands)
    assert here.status("one").status == "ACTIVE"


def images(here):
    """Return the image of the instance, and that of its stored request."""
    read = lambda current, act: act(current.store.document, here.status("one"))  # noqa: E731  # used twice
    return here.run(lambda current: (read(current, image_of).id, read(current, request_of).image.id))


def next_order(here):
    here.turn()
    (order,) = here.hands[0].poll().orders
    return order


def test_rebuild_replaces_the_image(here):
    build_active(here)
    operation = here.change("one", "rebuild", image=NEW)
    assert here.status("one").task == "rebuilding"
    order = next_order(here)
    guest = order.act.guest
    assert (action(order), order.limit_s, guest.image, guest.is_on, guest.node) == ("rebuild", 600.0, NEW, True, "h0")
    assert guest.allocations == {uuid_named("h0"): {"VCPU": 1, "MEMORY_MB": 1}}
    assert images(here) == ("old", "old")
    here.hands[0].act(order)
    here.turn()
    assert looks(here) == ("ACTIVE", "", "", "h0")
    assert (images(here), here.reader.operation(operation.id).outcome) == (("new", "new"), "done")
    assert here.story("one")[-1] == ("rebuild.done", {})


def test_rebuild_without_an_image_keeps_the_old_one(here):
    build_active(here)
    here.change("one", "rebuild")
    assert next_order(here).act.guest.image == OLD
    served(here, *here.hands)
    assert images(here) == ("old", "old")


def test_stopped_instance_stays_stopped(here):
    build_active(here)
    here.power("one", "stop")
    served(here, *here.hands)
    here.change("one", "rebuild", image=NEW)
    served(here, *here.hands)
    assert looks(here) == ("SHUTOFF", "", "", "h0")
    assert here.hands[0].guests == {ONE: "stopped"}


def test_failed_rebuild_ends_in_error_and_can_be_repeated(here):
    build_active(here)
    here.change("one", "rebuild", image=NEW)
    here.hands[0].answer(next_order(here), failed("no such image"))
    here.turn()
    assert looks(here) == ("ERROR", "", "no such image", "h0")
    assert images(here) == ("old", "old")
    here.clock.time_s += 1
    here.change("one", "rebuild", image=NEW)
    served(here, *here.hands)
    assert looks(here) == ("ACTIVE", "", "", "h0")


@pytest.mark.parametrize("failure", ["is away", "is silent", "goes"])
def test_rebuild_fails_if_the_host_does_not_answer(here, failure):
    build_active(here)
    if failure == "is away":
        here.hands[0].leave()
    here.change("one", "rebuild", image=NEW)
    here.turn()
    if failure == "is silent":
        here.clock.time_s += 600
        here.hands[0].beat()
    elif failure == "goes":
        here.hands[0].leave()
    here.turn()
    no_answer = "the agent of h0 does not answer"
    assert (
        looks(here)
        == {
            "is away": ("ACTIVE", "", no_answer, "h0"),
            "is silent": ("ERROR", "", "h0 did not answer within 600 s", "h0"),
            "goes": ("ERROR", "", no_answer, "h0"),
        }[failure]
    )
    assert here.open_operations() == []


def test_fault_spells_the_host_as_its_agent_does():
    with server(None, joined(host("Rack-1"))) as here:
        here.hands = [hand(here, "Rack-1")]
        build_active(here)
        here.change("one", "rebuild", image=NEW)
        here.turn()
        here.clock.time_s += 600
        here.hands[0].beat()
        here.turn()
        assert here.status("one").fault == "Rack-1 did not answer within 600 s"


def test_new_image_must_pass_the_filters_on_the_host():
    fleet = joined(host("h0", facts=INTEL))
    with server(None, fleet, settings=settings_of(enabled_filters=["compute", "image_properties"])) as here:
        here.hands = [hand(here, "h0")]
        build_active(here)
        with pytest.raises(Conflict, match="cannot be rebuilt from this image: h0: image_properties: "):
            here.change("one", "rebuild", image=ARM)
        assert looks(here) == ("ACTIVE", "", "", "h0")
        assert here.open_operations() == []
        here.change("one", "rebuild", image=NEW)
        served(here, *here.hands)
        assert images(here) == ("new", "new")


def test_rebuild_applies_only_filters_that_run_on_rebuilds():
    fleet = joined(host("h0", VCPU=1, MEMORY_MB=1, facts=INTEL))
    with server(None, fleet) as here:
        here.hands = [hand(here, "h0")]
        build_active(here)
        here.run(disable_host)
        here.change("one", "rebuild", image=NEW)
        served(here, *here.hands)
        assert images(here) == ("new", "new")


def disable_host(current):
    """Disable the only host for new instances."""
    facts = apply_service_change(current.state, [0], ServiceChange(is_disabled=True))
    return Plan(answer=None, writes=writes_of_facts(current.state, [0], facts))


def test_instance_that_boots_from_a_volume_keeps_its_image(here):
    build_active(here, is_bfv=True)
    with pytest.raises(BadRequest, match="boots from a volume: it cannot have another image"):
        here.change("one", "rebuild", image=NEW)


@pytest.mark.parametrize("turns", [0, 1])
def test_deletion_ends_the_rebuild_at_any_step(here, turns):
    build_active(here)
    here.change("one", "rebuild", image=NEW)
    for _ in range(turns):
        here.turn()
    here.delete("one")
    served(here, *here.hands)
    assert here.status("one").status == "DELETED"
    assert (here.used()["VCPU"], here.hands[0].guests, here.open_operations()) == (0, {}, [])
