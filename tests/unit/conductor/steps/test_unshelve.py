"""An instance that was shelved comes back: where it is, or on a host that is chosen for it."""

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
    with server(None, joined(ladder(3), group("apart", "anti-affinity"))) as made:
        made.hands = [hand(made, f"h{number}") for number in range(3)]
        yield made


def running(here, name="one", **request):
    here.build(name, key=name, **{"image": IMAGE, **request})
    served(here, *here.hands)
    assert here.status(name).status == "ACTIVE"


def shelved(here, name="one", *, offload_s=0.0, **request):
    running(here, name, **request)
    here.terms = replace(TERMS, shelved_offload_time_s=offload_s)
    here.change(name, "shelve")
    served(here, *here.hands)
    assert here.status(name).status == ("SHELVED" if offload_s else "SHELVED_OFFLOADED")


def test_it_is_started_where_it_is(here):
    shelved(here, offload_s=-1.0)
    here.change("one", "unshelve")
    here.turn()
    (order,) = here.hands[0].poll().orders
    assert (action(order), here.status("one").task) == ("power_on", "unshelving")
    here.hands[0].act(order)
    here.turn()
    assert standing(here) == ("ACTIVE", "", "h0", "", "h0")
    assert here.image("one") == IMAGE


@pytest.mark.parametrize("way", ["fails", "is silent", "is away", "goes"])
def test_where_it_cannot_be_started_it_stays_shelved(here, way):
    shelved(here, offload_s=-1.0)
    h0 = here.hands[0]
    if way == "is away":
        h0.leave()
    here.change("one", "unshelve")
    here.turn()
    if way == "fails":
        h0.answer(h0.poll().orders[0], failed("no memory"))
    elif way == "is silent":
        here.clock.time_s += 120
        h0.beat()
    elif way == "goes":
        h0.leave()
    here.turn()
    said = {"fails": "no memory", "is silent": "h0 did not answer within 120 s"}
    why = said.get(way, "the agent of h0 does not answer")
    assert standing(here) == ("SHELVED", "", "h0", why, "h0")
    assert here.image("one").id == f"saved {ONE}"


def test_it_is_built_from_what_was_saved_on_a_host_that_is_chosen_for_it(here):
    shelved(here)
    asked = here.change("one", "unshelve", key="back")
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
    (part,) = here.reader.parts_of(asked.id)
    assert (part.kind, part.outcome, here.reader.operation(asked.id).outcome) == ("spawn", "done", "done")


def test_an_alternate_takes_it_where_its_host_cannot(here):
    shelved(here)
    here.change("one", "unshelve")
    served(here, *here.hands, script={"h0": [failed("no network")]})
    assert standing(here) == ("ACTIVE", "", "h1", "", "h1")


def test_where_no_host_can_it_is_as_before_and_holds_nothing(here):
    shelved(here)
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


def test_where_there_is_no_host_for_it_it_is_as_before(here):
    shelved(here)
    for number in range(3):
        running(here, f"other-{number}")
    here.change("one", "unshelve")
    served(here, *here.hands)
    status, task, host, fault, held = standing(here)
    assert (status, task, host, held) == ("SHELVED_OFFLOADED", "", "", None)
    assert fault.startswith("No valid host was found. ")
    assert here.open_operations() == []


def test_a_host_without_an_agent_is_left_for_the_next(here):
    shelved(here)
    here.clock.time_s += 1
    here.run(lambda _current: here.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    here.change("one", "unshelve")
    served(here, *here.hands)
    assert standing(here) == ("ACTIVE", "", "h0", "", "h0")


def test_a_host_without_an_agent_is_given_back_where_there_is_no_other(here):
    shelved(here)
    for number in range(3):
        running(here, f"other-{number}")
    here.clock.time_s += 1
    here.run(lambda _current: here.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    here.change("one", "unshelve")
    served(here, *here.hands)
    assert standing(here) == ("SHELVED_OFFLOADED", "", "", "no agent runs on best", None)


def test_it_joins_its_server_group_again_under_its_policy(here):
    shelved(here, in_group="apart")
    running(here, "two", in_group="apart")
    assert here.status("two").host == "h0"
    here.change("one", "unshelve")
    served(here, *here.hands)
    assert here.status("one").host == "h1"
    here.change("two", "shelve")
    served(here, *here.hands)
    assert here.status("two").status == "SHELVED_OFFLOADED"


def test_one_operation_at_a_time_works_on_it(here):
    shelved(here)
    here.change("one", "unshelve", key="back")
    row = here.reader.operation(here.status("one").operation_id)
    assert (row.kind, row.step) == ("unshelve", "choose")
    with pytest.raises(Conflict, match="cannot unshelve now: its task is unshelving"):
        here.change("one", "unshelve", key="again")
    served(here, *here.hands)
    assert standing(here)[0] == "ACTIVE"


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("offload_s", [-1.0, 0.0])
def test_a_deletion_ends_it_at_any_step(here, turns, offload_s):
    shelved(here, offload_s=offload_s)
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


def test_it_is_not_forgotten_with_the_work_that_shelved_it():
    store = MemoryStore()
    with server(store, ladder(3)) as here:
        here.hands = [hand(here, f"h{number}") for number in range(3)]
        shelved(here)
        here.clock.time_s += 1e9
        assert store.prune_work(older_than_s=here.clock.time_s) > 0
        assert here.reader.operations(most=9) == []
        for each in here.hands:
            each.beat()
        here.change("one", "unshelve")
        here.turn()
        (order,) = here.hands[0].poll().orders
        assert order.act.guest.image.id == f"saved {ONE}"
