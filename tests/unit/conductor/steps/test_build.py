"""Builds end ACTIVE, or in ERROR with a fault and without allocations."""

import msgspec
import pytest

from roost.conductor.operation.step import body_of
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.fleet import Departure
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Retry
from roost.model.work.operation import Build, InstanceBuild
from roost.model.work.orders import Answer
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from tests.support.conductors.builders import failed_builds, ladder
from tests.support.conductors.conductors import action, failure, played_agent, run_until_idle, server
from tests.support.conductors.work_rows import status
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, hosts, merge_fleets, settings_of

NO_VALID_HOST = "No valid host was found. "


@pytest.fixture
def app():
    with server(None, ladder(4)) as app:
        yield app


def agents(app, count=4):
    return [played_agent(app, f"h{number}") for number in range(count)]


def spawn_of(app, name):
    """Return the operation that built an instance, and its body."""
    rows = app.reader.operations_on(uuid_bytes(uuid_named(name)), newest=9)
    row = next(row for row in rows if row.kind == "spawn")
    return row, body_of(row, InstanceBuild)


def attempts(app, name):
    return [(each.host, each.claim, each.problem) for each in spawn_of(app, name)[1].attempts]


def test_build_chooses_a_host_orders_the_guest_and_ends_active(app):
    h0, *_ = agents(app)
    operation = app.build("one", project_id="p", user_id="u")
    status = app.status("one")
    assert (status.status, status.task, status.operation_id, status.host) == ("BUILD", "scheduling", operation.id, "")
    app.turn()
    status = app.status("one")
    assert (status.status, status.task, status.host, status.node) == ("BUILD", "spawning", "h0", "h0")
    assert app.held("one")[0] == "h0"
    (order,) = h0.poll().orders
    assert (action(order), order.instance, order.number, order.limit_s) == ("spawn", uuid_named("one"), 1, 600.0)
    guest = order.act.guest
    assert (guest.uuid, guest.node, guest.name, guest.flavor.vcpus) == (uuid_named("one"), "h0", "one", 1)
    assert guest.allocations == {uuid_named("h0"): {"VCPU": 1, "MEMORY_MB": 1}}
    h0.act(order)
    app.turn()
    status = app.status("one")
    assert (status.status, status.task, status.operation_id, status.fault) == ("ACTIVE", "", 0, "")
    assert uuid_text(status.decision_uuid) == uuid_named("decision of key")
    assert (status.project_id, status.user_id) == ("p", "u")
    assert app.open_operations() == []
    assert attempts(app, "one") == [("h0", "claimed", "")]
    assert [kind for kind, _ in app.story("one")] == ["build.sent", "spawn.built"]
    row, _ = spawn_of(app, "one")
    assert (row.outcome, row.parent_id, row.turn) == ("done", operation.id, order.turn)


@pytest.mark.shows("S009")
def test_order_has_the_limits_of_the_filters():
    with server(None, ladder(4), settings=settings_of(enabled_filters=["RamFilter"])) as app:
        h0, *_ = agents(app)
        app.build("one")
        app.turn()
        (order,) = h0.poll().orders
        assert order.act.guest.limits == {"memory_mb": 1.5 * 1000}


def test_turn_of_the_order_is_the_version_of_the_status(app):
    h0, *_ = agents(app)
    app.build("one")
    app.turn()
    assert h0.poll().orders[0].turn == app.status("one").version


def test_same_key_returns_the_existing_operation(app):
    operation = app.build("one")
    assert app.build("one") == operation
    assert [row.id for row in app.reader.operations(limit=9)] == [operation.id]


def test_existing_instance_is_not_built_again(app):
    app.build("one")
    with pytest.raises(Conflict, match="exists already, in status BUILD"):
        app.build("one", key="another")
    agents(app)
    app.turn()
    with pytest.raises(Conflict, match="exists already"):
        app.build("two", "one", key="another")
    assert app.status("two") is None


@pytest.mark.parametrize(
    ("names", "more", "problem"),
    [
        ([""], {}, "must be text of 1..250 characters"),
        (["x" * 251], {}, "must be text of 1..250 characters"),
        ([f"i{number}" for number in range(1001)], {}, "1,000 instances at most"),
    ],
)
def test_invalid_build_request_is_refused_and_changes_nothing(app, names, more, problem):
    with pytest.raises(BadRequest, match=problem):
        app.build(*names, **more)
    assert app.reader.operations(limit=9) == []


def test_request_for_250_instances_builds_all_of_them():
    names = [f"i{number}" for number in range(250)]
    with server(None, hosts(5, VCPU=60, MEMORY_MB=600)) as app:
        hands = agents(app, 5)
        operation = app.build(*names)
        app.turn()
        parent = app.reader.operation(operation.id)
        assert (parent.outcome, body_of(parent, Build).sent) == ("done", 250)
        run_until_idle(app, *hands)
        statuses = app.reader.statuses(limit=999)
        assert [status.status for status in statuses] == ["ACTIVE"] * 250
        assert {status.name for status in statuses} == {"i0", *(f"i0-{number}" for number in range(2, 251))}
        assert app.used() == {"VCPU": 250, "MEMORY_MB": 250}
        assert len(app.reader.parts_of(operation.id)) == 250
        assert app.open_operations() == []


def test_no_valid_host_puts_all_instances_in_error_with_the_reason(app):
    agents(app)
    operation = app.build("one", "two", vcpus=2)
    app.turn()
    for name in ("one", "two"):
        status = app.status(name)
        assert (status.status, status.task, status.operation_id) == ("ERROR", "", 0)
        assert status.fault.startswith(NO_VALID_HOST)
        assert app.held(name) is None
    parent = app.reader.operation(operation.id)
    assert (parent.outcome, body_of(parent, Build).problem) == ("failed", app.status("one").fault)
    decision = app.run(lambda _current: app.roost.decision(uuid_named("decision of key")))
    assert not decision.is_granted
    assert app.open_operations() == []


def test_unknown_server_group_is_the_fault(app):
    app.build("one", in_group="nobody")
    app.turn()
    assert app.status("one").status == "ERROR"
    assert app.status("one").fault == f"no such server group: {uuid_named('nobody')}"
    assert app.open_operations() == []


def test_host_without_an_agent_is_released():
    with server(None, ladder(2)) as app:
        app.build("one")
        app.turn()
        assert (app.status("one").status, app.status("one").fault) == ("ERROR", "no agent runs on h0")
        assert (app.held("one"), app.used()["VCPU"]) == (None, 0)
        assert app.open_operations() == []


@pytest.mark.shows("S176")
def test_host_without_an_agent_is_skipped_and_not_an_attempt(app):
    hands = [played_agent(app, f"h{number}") for number in (1, 2, 3)]
    app.build("one")
    run_until_idle(app, *hands, script={"h1": [failure("no h1")]})
    assert (app.status("one").status, app.status("one").host, app.held("one")[0]) == ("ACTIVE", "h2", "h2")
    assert attempts(app, "one") == [
        ("h0", "claimed", "no agent runs on h0"),
        ("h1", "claimed", "no h1"),
        ("h2", "claimed", ""),
    ]
    assert failed_builds(app.roost.state) == {"h0": 0, "h1": 1, "h2": 0, "h3": 0}
    assert spawn_of(app, "one")[1].attempt == 2
    assert app.used()["VCPU"] == 1


def test_forced_host_without_an_agent_is_the_fault(app):
    hands = [played_agent(app, "h1")]
    app.build("one", force_hosts=("h0",))
    run_until_idle(app, *hands)
    assert (app.status("one").status, app.status("one").fault) == ("ERROR", "no agent runs on h0")
    assert app.used()["VCPU"] == 0


def test_agent_that_registers_after_the_decision_builds_the_instance(app):
    app.build("one")
    conductor = app.conductor("one")
    while app.status("one").task != "spawning":
        assert conductor.turn()
    h0 = played_agent(app, "h0")
    run_until_idle(app, h0)
    assert (app.status("one").status, attempts(app, "one")) == ("ACTIVE", [("h0", "claimed", "")])


@pytest.mark.shows("S176")
def test_failed_build_claims_the_next_alternate_and_orders_it_there(app):
    hands = agents(app)
    app.build("one")
    app.turn()
    h0, h1, *_ = hands
    (order,) = h0.poll().orders
    h0.act(order, failure("no network"))
    app.turn()
    assert (app.held("one")[0], app.status("one").host) == ("h1", "h1")
    (second,) = h1.poll().orders
    assert (second.number, second.turn) == (2, order.turn)
    assert second.act.guest.allocations == {uuid_named("h1"): {"VCPU": 1, "MEMORY_MB": 1}}
    run_until_idle(app, *hands)
    assert app.status("one").status == "ACTIVE"
    assert attempts(app, "one") == [("h0", "claimed", "no network"), ("h1", "claimed", "")]
    assert ("spawn.failed", {"host": "h0", "problem": "no network", "next": "h1"}) in app.story("one")
    assert app.used()["VCPU"] == 1


def test_failed_builds_are_counted_on_their_hosts(app):
    hands = agents(app)
    app.build("one")
    run_until_idle(app, *hands, script={"h0": [failure()], "h1": [failure()]})
    facts = {
        name: app.roost.state.hosts.facts[row].failed_builds for row, name in enumerate(app.roost.state.hosts.names)
    }
    assert facts == {"h0": 1, "h1": 1, "h2": 0, "h3": 0}


@pytest.mark.shows("S176")
def test_fault_has_the_number_of_attempts_and_the_last_error(app):
    hands = agents(app)
    app.build("one")
    run_until_idle(app, *hands, script={name: [failure(f"no {name}")] for name in ("h0", "h1", "h2")})
    status = app.status("one")
    assert (status.status, status.host, app.held("one")) == ("ERROR", "", None)
    assert status.fault == (
        "Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for instance "
        f"{uuid_named('one')}. Last exception: no h2. Attempts: host h0: no h0; host h1: no h1; host h2: no h2"
    )
    assert [each[2] for each in attempts(app, "one")] == ["no h0", "no h1", "no h2"]
    assert app.used()["VCPU"] == 0
    assert app.open_operations() == []


def test_fault_reports_that_no_alternate_is_left():
    with server(None, ladder(2)) as app:
        hands = agents(app, 2)
        app.build("one")
        run_until_idle(app, *hands, script={"h0": [failure("image not found")], "h1": [failure("disk full")]})
        assert app.status("one").fault == (
            "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for "
            f"instance {uuid_named('one')}. host h0: image not found; host h1: disk full"
        )


@pytest.mark.shows("S176")
def test_alternate_without_room_is_skipped(app):
    hands = agents(app)
    app.build("one")
    app.turn()
    app.build("thief", key="thief", force_hosts=("h1",))
    run_until_idle(app, *hands, script={"h0": [failure("no")]})
    assert app.status("one").host == "h2"
    assert [each[:2] for each in attempts(app, "one")] == [("h0", "claimed"), ("h1", "refused"), ("h2", "claimed")]
    assert app.status("thief").status == "ACTIVE"


def test_alternate_without_an_agent_is_skipped(app):
    hands = [played_agent(app, name) for name in ("h0", "h2")]
    app.build("one")
    run_until_idle(app, *hands, script={"h0": [failure("no")]})
    assert attempts(app, "one")[1] == ("h1", "refused", "no agent runs on h1")
    assert (app.status("one").status, app.status("one").host) == ("ACTIVE", "h2")


def test_story_has_the_build_error_if_no_alternate_has_an_agent():
    with server(None, ladder(2)) as app:
        hands = [played_agent(app, "h0")]
        app.build("one")
        run_until_idle(app, *hands, script={"h0": [failure("no network")]})
        fault = app.status("one").fault
        assert "Exhausted all hosts available" in fault
        last = ("spawn.failed", {"host": "h0", "problem": "no network", "fault": fault})
        assert app.story("one")[-1] == last


def test_alternate_with_a_gone_agent_is_skipped_at_once(app):
    hands = agents(app)
    app.build("one")
    app.turn()
    hands[1].leave()
    run_until_idle(app, hands[0], *hands[2:], script={"h0": [failure("no")]})
    assert attempts(app, "one")[1] == ("h1", "refused", "the agent of h1 does not answer")
    assert (app.status("one").status, app.status("one").host) == ("ACTIVE", "h2")
    assert failed_builds(app.roost.state)["h1"] == 0


def test_alternate_that_is_not_clean_yet_is_skipped(app):
    hands = agents(app)
    ghost = status(9, uuid=uuid_bytes(uuid_named("ghost")), host="h3", status="ACTIVE", task="")
    app.run(lambda current: current.commit([Item(writes=(), work=(Put(ghost),))]))
    app.build("one")
    app.turn()
    hands[1].guests = {uuid_named("ghost"): "running"}
    assert not hands[1].register().is_ready
    hands[0].answer(hands[0].poll().orders[0], failure("no"))
    app.turn()
    assert attempts(app, "one")[1] == ("h1", "refused", "h1 is back, but not clean yet")
    run_until_idle(app, *hands)
    assert (app.status("one").status, app.status("one").host) == ("ACTIVE", "h2")


def test_build_error_of_a_forced_host_is_the_fault(app):
    hands = agents(app)
    app.build("one", force_hosts=("h0",))
    run_until_idle(app, *hands, script={"h0": [failure("no network")]})
    assert (app.status("one").status, app.status("one").fault) == ("ERROR", "no network")
    assert app.used()["VCPU"] == 0


def test_attempts_of_an_earlier_request_count(app):
    hands = agents(app)
    app.build("one", retry=Retry(attempts=3))
    run_until_idle(app, *hands, script={"h0": [failure("no")]})
    assert "Exceeded max scheduling attempts 3" in app.status("one").fault
    app.build("two", key="two", retry=Retry(attempts=4))
    run_until_idle(app, *hands)
    assert app.status("two").fault.endswith("Last exception: None")


def test_stale_answer_moves_the_build_to_the_next_alternate(app):
    hands = agents(app)
    app.build("one")
    run_until_idle(app, *hands, script={"h0": [Answer(outcome="stale", problem="a later order was here before it")]})
    assert (app.status("one").status, app.status("one").host) == ("ACTIVE", "h1")


def test_aborted_build_ends_with_the_problem_of_the_host(app):
    hands = agents(app)
    app.build("one")
    run_until_idle(app, *hands, script={"h0": [Answer(outcome="aborted", problem="the image is broken")]})
    assert (app.status("one").status, app.status("one").fault) == ("ERROR", "the image is broken")
    assert failed_builds(app.roost.state)["h0"] == 1
    assert (app.held("one"), app.used()["VCPU"]) == (None, 0)


def test_host_that_leaves_is_replaced_and_its_order_withdrawn(app):
    h0, h1, *_ = agents(app)
    app.build("one")
    app.turn()
    (order,) = h0.poll().orders
    h0.leave()
    app.turn()
    assert app.reader.order(order.id).state == "withdrawn"
    assert (app.held("one")[0], app.status("one").host) == ("h1", "h1")
    assert h0.answer(order) is False
    run_until_idle(app, h1)
    assert attempts(app, "one") == [("h0", "claimed", "the agent of h0 does not answer"), ("h1", "claimed", "")]
    h0.guests = {uuid_named("one"): "running"}
    reply = h0.register()
    assert (reply.is_ready, reply.destroy) == (False, (uuid_named("one"),))


def test_late_host_destroys_the_guest_before_the_next_one_is_claimed(app):
    h0, h1, *_ = hands = agents(app)
    app.build("one")
    app.turn()
    (order,) = h0.poll().orders
    app.clock.time_s += 599
    for agent in hands:
        agent.beat()
    assert app.turn() == 0
    app.clock.time_s += 1
    app.turn()
    assert app.held("one")[0] == "h0"
    h0.known = [order.id]
    reply = h0.poll()
    assert (reply.withdrawn, [action(each) for each in reply.orders]) == ((order.id,), ["destroy"])
    app.clock.time_s += 121
    for agent in hands:
        agent.beat()
    app.turn()
    assert app.held("one")[0] == "h0"
    h0.act(reply.orders[0])
    app.turn()
    assert app.held("one")[0] == "h1"
    run_until_idle(app, h1)
    assert attempts(app, "one")[0][2] == "it was not built within 600 s"
    assert failed_builds(app.roost.state)["h0"] == 1


def test_allocations_stay_if_a_late_host_cannot_destroy_the_guest(app):
    h0, *_ = hands = agents(app)
    app.build("one")
    app.turn()
    app.clock.time_s += 600
    for agent in hands:
        agent.beat()
    app.turn()
    (order,) = [each for each in h0.poll().orders if action(each) == "destroy"]
    h0.answer(order, failure("it hangs"))
    app.turn()
    status = app.status("one")
    assert (status.status, status.host, app.held("one")[0]) == ("ERROR", "h0", "h0")
    assert status.fault == "it was not built within 600 s; and h0 could not destroy it: it hangs"
    assert failed_builds(app.roost.state)["h0"] == 1
    app.delete("one")
    run_until_idle(app, *hands)
    assert (app.status("one").status, app.used()["VCPU"]) == ("DELETED", 0)


def test_instance_that_lost_its_claim_during_the_build_ends_in_error(app):
    h0, *_ = hands = agents(app)
    app.build("one")
    app.turn()
    app.run(lambda _current: app.roost.work([Departure(instance_uuids=(uuid_named("one"),))]))
    run_until_idle(app, *hands)
    assert app.status("one").status == "ERROR"
    assert app.status("one").fault == f"the instance {uuid_named('one')} no longer exists"
    assert h0.guests == {}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"body": b"\xc1"}, "operation 1 cannot be understood"),
        ({"body": b"\xc1", "step": "send"}, "operation 1 cannot be understood"),
        ({"kind": "teleport"}, "operation 1 is a 'teleport', which this program does not know"),
    ],
)
def test_malformed_operation_is_postponed_and_others_continue(app, capfd, changes, problem):
    hands = agents(app)
    bad = app.build("bad", key="bad")
    app.build("one")
    row = msgspec.structs.replace(app.reader.operation(bad.id), version=2, **changes)
    app.run(lambda current: current.commit([Item(writes=(), work=(Put(row, 1),))]))
    run_until_idle(app, *hands)
    assert app.status("one").status == "ACTIVE"
    assert app.reader.operation(bad.id).due_at_s == app.clock.now_s() + 30
    assert problem in capfd.readouterr().err


def test_every_order_has_the_topology_and_invalid_extra_specs_fail(app):
    h0, h1, *_ = agents(app)
    specs = {"hw:numa_nodes": "1", "hw:mem_page_size": "small"}
    app.build("one", extra_specs=specs)
    app.turn()
    (order,) = h0.poll().orders
    assert len(order.act.guest.topology.cells) == 1
    h0.act(order, failure())
    app.turn()
    assert h1.poll().orders[0].act.guest.topology == order.act.guest.topology
    app.build("two", key="two", extra_specs={"hw:numa_nodes": "many"})
    app.turn()
    assert app.status("two").status == "ERROR"
    assert "hw:numa_nodes" in app.status("two").fault
    assert app.used()["VCPU"] == 1


def test_claims_of_a_missing_decision_are_released(app, monkeypatch):
    agents(app)
    monkeypatch.setattr("roost.conductor.steps.build.BATCH", 1)
    app.build("one", "two")

    def raise_not_found(uuid):
        raise NotFound("decision", uuid)

    monkeypatch.setattr(app.roost, "decision", raise_not_found)
    app.turn()
    assert [app.status(name).status for name in ("one", "two")] == ["ERROR", "ERROR"]
    assert app.status("one").fault == f"no such decision: {uuid_named('decision of key')}"
    assert (app.used()["VCPU"], app.open_operations()) == (0, [])


@pytest.mark.shows("S163", "S175")
def test_each_cell_has_its_conductor():
    fleet = merge_fleets(host("east", facts=HostFacts(cell="east")), host("west", facts=HostFacts(cell="west")))
    with server(None, fleet, settings=settings_of()) as app:
        east, west = played_agent(app, "east"), played_agent(app, "west")
        app.build("one", force_hosts=("east",))
        app.build("two", key="two", force_hosts=("west",))
        while app.conductor("super", cells=[""]).turn():
            pass
        for agent in (east, west):
            (order,) = agent.poll().orders
            agent.act(order)
        app.conductor("east", cells=["east"]).turn()
        assert [app.status(name).status for name in ("one", "two")] == ["ACTIVE", "BUILD"]
        app.conductor("west", cells=["west"]).turn()
        assert app.status("two").status == "ACTIVE"
        assert (app.status("two").cell, attempts(app, "two")) == ("west", [("west", "claimed", "")])
