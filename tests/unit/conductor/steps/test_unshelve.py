"""Unshelving: the instance is started on its host, or built on a newly chosen host."""

from dataclasses import replace

import pytest

from roost.errors import Conflict
from roost.model.image import Image
from roost.store.memory_store import MemoryStore
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import TERMS, action, failed, hand, served, server, standing
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, joined

IMAGE = Image(id="debian", properties={"os_distro": "debian", "hw_machine_type": "q35"})
ONE = uuid_named("one")


@pytest.fixture
def here():
    with server(None, joined(ladder(3), group("apart", "anti-affinity"))) as here:
        here.hands = [hand(here, f"h{number}") for number in range(3)]
        yield here


def build_active(here, name="one", **request):
    here.build(name, key=name, **{"image": IMAGE, **request})
    served(here, *here.hands)
    assert here.status(name).status == "ACTIVE"


def build_shelved(here, name="one", *, offload_s=0.0, **request):
    build_active(here, name, **request)
    here.terms = replace(TERMS, shelved_offload_time_s=offload_s)
    here.change(name, "shelve")
    served(here, *here.hands)
    assert here.status(name).status == ("SHELVED" if offload_s else "SHELVED_OFFLOADED")


def test_shelved_instance_is_started_on_its_host(here):
    build_shelved(here, offload_s=-1.0)
    here.change("one", "unshelve")
    here.turn()
    (order,) = here.hands[0].poll().orders
    assert (action(order), here.status("one").task) == ("power_on", "unshelving")
    here.hands[0].act(order)
    here.turn()
    assert standing(here) == ("ACTIVE", "", "h0", "", "h0")
    assert here.image("one") == IMAGE


@pytest.mark.parametrize("failure", ["fails", "is silent", "is away", "goes"])
def test_failed_start_leaves_the_instance_shelved(here, failure):
    build_shelved(here, offload_s=-1.0)
    h0 = here.hands[0]
    if failure == "is away":
        h0.leave()
    here.change("one", "unshelve")
    here.turn()
    if failure == "fails":
        h0.answer(h0.poll().orders[0], failed("no memory"))
    elif failure == "is silent":
        here.clock.time_s += 120
        h0.beat()
    elif failure == "goes":
        h0.leave()
    here.turn()
    problems = {"fails": "no memory", "is silent": "h0 did not answer within 120 s"}
    problem = problems.get(failure, "the agent of h0 does not answer")
    assert standing(here) == ("SHELVED", "", "h0", problem, "h0")
    assert here.image("one").id == f"saved {ONE}"


def test_offloaded_instance_is_built_from_its_saved_image(here):
    build_shelved(here)
    operation = here.change("one", "unshelve", key="back")
    here.turn()
    assert (here.status("one").task, here.status("one").host, here.held("one")[0]) == ("spawning", "h0", "h0")
    (order,) = here.hands[0].poll().orders
    assert (action(order), order.act.guest.image.id) == ("spawn", f"saved {ONE}")
    assert order.act.guest.image.properties == IMAGE.properties
    assert order.act.guest.allocations == {uuid_named("h0"): {"VCPU": 1, "MEMORY_MB": 1}}
    here.hands[0].act(order)
    here.turn()
    assert standing(here) == ("ACTIVE", "", "h0", "", "h0")
    assert here.image("one") == IMAGE
    decision = here.run(lambda _current: here.roost.decision(uuid_named("decision of back")))
    assert here.run(lambda _current: here.roost.request_of(decision)).image == IMAGE
    (part,) = here.reader.parts_of(operation.id)
    assert (part.kind, part.outcome, here.reader.operation(operation.id).outcome) == ("spawn", "done", "done")


def test_alternate_builds_the_instance_if_the_chosen_host_fails(here):
    build_shelved(here)
    here.change("one", "unshelve")
    served(here, *here.hands, script={"h0": [failed("no network")]})
    assert standing(here) == ("ACTIVE", "", "h1", "", "h1")


def test_failed_builds_leave_the_instance_offloaded_without_a_claim(here):
    build_shelved(here)
    here.change("one", "unshelve")
    served(here, *here.hands, script={f"h{number}": [failed("no network")] for number in range(3)})
    status, task, host, fault, held = standing(here)
    assert (status, task, host, held) == ("SHELVED_OFFLOADED", "", "", None)
    assert "no network" in fault
    assert (here.used()["VCPU"], here.open_operations(), here.image("one").id) == (0, [], f"saved {ONE}")
    here.clock.time_s += 1
    here.change("one", "unshelve")
    served(here, *here.hands)
    assert standing(here)[0] == "ACTIVE"


def test_no_valid_host_leaves_the_instance_offloaded(here):
    build_shelved(here)
    for number in range(3):
        build_active(here, f"other-{number}")
    here.change("one", "unshelve")
    served(here, *here.hands)
    status, task, host, fault, held = standing(here)
    assert (status, task, host, held) == ("SHELVED_OFFLOADED", "", "", None)
    assert fault.startswith("No valid host was found. ")
    assert here.open_operations() == []


def test_host_without_an_agent_is_skipped(here):
    build_shelved(here)
    here.clock.time_s += 1
    here.run(lambda _current: here.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    here.change("one", "unshelve")
    served(here, *here.hands)
    assert standing(here) == ("ACTIVE", "", "h0", "", "h0")


def test_host_without_an_agent_is_released_if_it_is_the_only_one(here):
    build_shelved(here)
    for number in range(3):
        build_active(here, f"other-{number}")
    here.clock.time_s += 1
    here.run(lambda _current: here.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    here.change("one", "unshelve")
    served(here, *here.hands)
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "no agent runs on best", None)


def test_unshelved_instance_joins_its_server_group_again(here):
    build_shelved(here, in_group="apart")
    build_active(here, "two", in_group="apart")
    assert here.status("two").host == "h0"
    here.change("one", "unshelve")
    served(here, *here.hands)
    assert here.status("one").host == "h1"
    here.change("two", "shelve")
    served(here, *here.hands)
    assert here.status("two").status == "SHELVED_OFFLOADED"


def test_second_unshelve_is_refused_while_the_first_is_open(here):
    build_shelved(here)
    here.change("one", "unshelve", key="back")
    row = here.reader.operation(here.status("one").operation_id)
    assert (row.kind, row.step) == ("unshelve", "choose")
    with pytest.raises(Conflict, match="cannot unshelve now: its task is unshelving"):
        here.change("one", "unshelve", key="again")
    served(here, *here.hands)
    assert standing(here)[0] == "ACTIVE"


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("offload_s", [-1.0, 0.0])
def test_deletion_ends_unshelving_at_any_step(here, turns, offload_s):
    build_shelved(here, offload_s=offload_s)
    here.change("one", "unshelve")
    for _ in range(turns):
        here.turn()
    here.delete("one")
    here.clock.time_s += 6
    for each in here.hands:
        each.beat()
    served(here, *here.hands)
    assert standing(here)[:3] == ("DELETED", "", "")
    assert (here.used()["VCPU"], here.hands[0].guests, here.open_operations()) == (0, {}, [])


def test_saved_image_survives_the_pruning_of_old_work():
    store = MemoryStore()
    with server(store, ladder(3)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(3)]
        build_shelved(here)
        here.clock.time_s += 1e9
        assert store.prune_work(older_than_s=here.clock.time_s) > 0
        assert here.reader.operations(most=9) == []
        for each in here.hands:
            each.beat()
        here.change("one", "unshelve")
        here.turn()
        (order,) = here.hands[0].poll().orders
        assert order.act.guest.image.id == f"saved {ONE}"
