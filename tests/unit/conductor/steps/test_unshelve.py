"""Unshelving: the instance is started on its host, or built on a newly chosen host."""

from dataclasses import replace

import pytest

from roost.errors import Conflict
from roost.model.image import Image
from roost.store.memory_store import MemoryStore
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import TERMS, action, instance_standing, played_agent, run_until_idle, server
from tests.support.conductors.conductors import failure as failed
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import group, host, merge_fleets

IMAGE = Image(id="debian", properties={"os_distro": "debian", "hw_machine_type": "q35"})
ONE = uuid_named("one")


@pytest.fixture
def app():
    with server(None, merge_fleets(ladder(3), group("apart", "anti-affinity"))) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(3)]
        yield app


def build_active(app, name="one", **request):
    app.build(name, key=name, **{"image": IMAGE, **request})
    run_until_idle(app, *app.hands)
    assert app.status(name).status == "ACTIVE"


def build_shelved(app, name="one", *, offload_s=0.0, **request):
    build_active(app, name, **request)
    app.terms = replace(TERMS, shelved_offload_time_s=offload_s)
    app.change(name, "shelve")
    run_until_idle(app, *app.hands)
    assert app.status(name).status == ("SHELVED" if offload_s else "SHELVED_OFFLOADED")


def test_shelved_instance_is_started_on_its_host(app):
    build_shelved(app, offload_s=-1.0)
    app.change("one", "unshelve")
    app.turn()
    (order,) = app.hands[0].poll().orders
    assert (action(order), app.status("one").task) == ("power_on", "unshelving")
    app.hands[0].act(order)
    app.turn()
    assert instance_standing(app) == ("ACTIVE", "", "h0", "", "h0")
    assert app.image("one") == IMAGE


@pytest.mark.parametrize("failure", ["fails", "is silent", "is away", "goes"])
def test_failed_start_leaves_the_instance_shelved(app, failure):
    build_shelved(app, offload_s=-1.0)
    h0 = app.hands[0]
    if failure == "is away":
        h0.leave()
    app.change("one", "unshelve")
    app.turn()
    if failure == "fails":
        h0.answer(h0.poll().orders[0], failed("no memory"))
    elif failure == "is silent":
        app.clock.time_s += 120
        h0.beat()
    elif failure == "goes":
        h0.leave()
    app.turn()
    problems = {"fails": "no memory", "is silent": "h0 did not answer within 120 s"}
    problem = problems.get(failure, "the agent of h0 does not answer")
    assert instance_standing(app) == ("SHELVED", "", "h0", problem, "h0")
    assert app.image("one").id == f"saved {ONE}"


def test_offloaded_instance_is_built_from_its_saved_image(app):
    build_shelved(app)
    operation = app.change("one", "unshelve", key="back")
    app.turn()
    assert (app.status("one").task, app.status("one").host, app.held("one")[0]) == ("spawning", "h0", "h0")
    (order,) = app.hands[0].poll().orders
    assert (action(order), order.act.guest.image.id) == ("spawn", f"saved {ONE}")
    assert order.act.guest.image.properties == IMAGE.properties
    assert order.act.guest.allocations == {uuid_named("h0"): {"VCPU": 1, "MEMORY_MB": 1}}
    app.hands[0].act(order)
    app.turn()
    assert instance_standing(app) == ("ACTIVE", "", "h0", "", "h0")
    assert app.image("one") == IMAGE
    decision = app.run(lambda _current: app.roost.decision(uuid_named("decision of back")))
    assert app.run(lambda _current: app.roost.request_of(decision)).image == IMAGE
    (part,) = app.reader.parts_of(operation.id)
    assert (part.kind, part.outcome, app.reader.operation(operation.id).outcome) == ("spawn", "done", "done")


def test_alternate_builds_the_instance_if_the_chosen_host_fails(app):
    build_shelved(app)
    app.change("one", "unshelve")
    run_until_idle(app, *app.hands, script={"h0": [failed("no network")]})
    assert instance_standing(app) == ("ACTIVE", "", "h1", "", "h1")


def test_failed_builds_leave_the_instance_offloaded_without_a_claim(app):
    build_shelved(app)
    app.change("one", "unshelve")
    run_until_idle(app, *app.hands, script={f"h{number}": [failed("no network")] for number in range(3)})
    status, task, host, fault, held = instance_standing(app)
    assert (status, task, host, held) == ("SHELVED_OFFLOADED", "", "", None)
    assert "no network" in fault
    assert (app.used()["VCPU"], app.open_operations(), app.image("one").id) == (0, [], f"saved {ONE}")
    app.clock.time_s += 1
    app.change("one", "unshelve")
    run_until_idle(app, *app.hands)
    assert instance_standing(app)[0] == "ACTIVE"


def test_no_valid_host_leaves_the_instance_offloaded(app):
    build_shelved(app)
    for number in range(3):
        build_active(app, f"other-{number}")
    app.change("one", "unshelve")
    run_until_idle(app, *app.hands)
    status, task, host, fault, held = instance_standing(app)
    assert (status, task, host, held) == ("SHELVED_OFFLOADED", "", "", None)
    assert fault.startswith("No valid host was found. ")
    assert app.open_operations() == []


def test_host_without_an_agent_is_skipped(app):
    build_shelved(app)
    app.clock.time_s += 1
    app.run(lambda _current: app.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    app.change("one", "unshelve")
    run_until_idle(app, *app.hands)
    assert instance_standing(app) == ("ACTIVE", "", "h0", "", "h0")


def test_host_without_an_agent_is_released_if_it_is_the_only_one(app):
    build_shelved(app)
    for number in range(3):
        build_active(app, f"other-{number}")
    app.clock.time_s += 1
    app.run(lambda _current: app.roost.install(host("best", VCPU=1, MEMORY_MB=9000)))
    app.change("one", "unshelve")
    run_until_idle(app, *app.hands)
    assert instance_standing(app) == ("SHELVED_OFFLOADED", "", "", "no agent runs on best", None)


def test_unshelved_instance_joins_its_server_group_again(app):
    build_shelved(app, in_group="apart")
    build_active(app, "two", in_group="apart")
    assert app.status("two").host == "h0"
    app.change("one", "unshelve")
    run_until_idle(app, *app.hands)
    assert app.status("one").host == "h1"
    app.change("two", "shelve")
    run_until_idle(app, *app.hands)
    assert app.status("two").status == "SHELVED_OFFLOADED"


def test_second_unshelve_is_refused_while_the_first_is_open(app):
    build_shelved(app)
    app.change("one", "unshelve", key="back")
    row = app.reader.operation(app.status("one").operation_id)
    assert (row.kind, row.step) == ("unshelve", "choose")
    with pytest.raises(Conflict, match="cannot unshelve now: its task is unshelving"):
        app.change("one", "unshelve", key="again")
    run_until_idle(app, *app.hands)
    assert instance_standing(app)[0] == "ACTIVE"


@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("offload_s", [-1.0, 0.0])
def test_deletion_ends_unshelving_at_any_step(app, turns, offload_s):
    build_shelved(app, offload_s=offload_s)
    app.change("one", "unshelve")
    for _ in range(turns):
        app.turn()
    app.delete("one")
    app.clock.time_s += 6
    for each in app.hands:
        each.beat()
    run_until_idle(app, *app.hands)
    assert instance_standing(app)[:3] == ("DELETED", "", "")
    assert (app.used()["VCPU"], app.hands[0].guests, app.open_operations()) == (0, {}, [])


def test_saved_image_survives_the_pruning_of_old_work():
    store = MemoryStore()
    with server(store, ladder(3)) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(3)]
        build_shelved(app)
        app.clock.time_s += 1e9
        assert store.prune_work(older_than_s=app.clock.time_s) > 0
        assert app.reader.operations(limit=9) == []
        for each in app.hands:
            each.beat()
        app.change("one", "unshelve")
        app.turn()
        (order,) = app.hands[0].poll().orders
        assert order.act.guest.image.id == f"saved {ONE}"
