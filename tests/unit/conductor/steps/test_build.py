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
from tests.support.conductors.conductors import action, failed, hand, served, server
from tests.support.conductors.work_rows import status
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, hosts, joined, settings_of

NO_VALID_HOST = "No valid host was found. "


@pytest.fixture
def here():
    with server(None, ladder(4)) as here:
        yield here


def agents(here, count=4):
    return [hand(here, f"h{number}") for number in range(count)]


def spawn_of(here, name):
    """Return the operation that built an instance, and its body."""
    rows = here.reader.operations_on(uuid_bytes(uuid_named(name)), newest=9)
    row = next(row for row in rows if row.kind == "spawn")
    return row, body_of(row, InstanceBuild)


def attempts(here, name):
    return [(each.host, each.claim, each.problem) for each in spawn_of(here, name)[1].attempts]


def test_build_chooses_a_host_orders_the_guest_and_ends_active(here):
    h0, *_ = agents(here)
    operation = here.build("one", project_id="p", user_id="u")
    status = here.status("one")
    assert (status.status, status.task, status.operation_id, status.host) == ("BUILD", "scheduling", operation.id, "")
    here.turn()
    status = here.status("one")
    assert (status.status, status.task, status.host, status.node) == ("BUILD", "spawning", "h0", "h0")
    assert here.held("one")[0] == "h0"
    (order,) = h0.poll().orders
    assert (action(order), order.instance, order.number, order.limit_s) == ("spawn", uuid_named("one"), 1, 600.0)
    guest = order.act.guest
    assert (guest.uuid, guest.node, guest.name, guest.flavor.vcpus) == (uuid_named("one"), "h0", "one", 1)
    assert guest.allocations == {uuid_named("h0"): {"VCPU": 1, "MEMORY_MB": 1}}
    h0.act(order)
    here.turn()
    status = here.status("one")
    assert (status.status, status.task, status.operation_id, status.fault) == ("ACTIVE", "", 0, "")
    assert uuid_text(status.decision_uuid) == uuid_named("decision of key")
    assert (status.project_id, status.user_id) == ("p", "u")
    assert here.open_operations() == []
    assert attempts(here, "one") == [("h0", "claimed", "")]
    assert [kind for kind, _ in here.story("one")] == ["build.sent", "spawn.built"]
    row, _ = spawn_of(here, "one")
    assert (row.outcome, row.parent_id, row.turn) == ("done", operation.id, order.turn)


@pytest.mark.shows("S009")
def test_order_has_the_limits_of_the_filters():
    with server(None, ladder(4), settings=settings_of(enabled_filters=["RamFilter"])) as here:
        h0, *_ = agents(here)
        here.build("one")
        here.turn()
        (order,) = h0.poll().orders
        assert order.act.guest.limits == {"memory_mb": 1.5 * 1000}


def test_turn_of_the_order_is_the_version_of_the_status(here):
    h0, *_ = agents(here)
    here.build("one")
    here.turn()
    assert h0.poll().orders[0].turn == here.status("one").version


def test_same_key_returns_the_existing_operation(here):
    operation = here.build("one")
    assert here.build("one") == operation
    assert [row.id for row in here.reader.operations(most=9)] == [operation.id]


def test_existing_instance_is_not_built_again(here):
    here.build("one")
    with pytest.raises(Conflict, match="exists already, in status BUILD"):
        here.build("one", key="another")
    agents(here)
    here.turn()
    with pytest.raises(Conflict, match="exists already"):
        here.build("two", "one", key="another")
    assert here.status("two") is None


@pytest.mark.parametrize(
    ("names", "more", "problem"),
    [
        ([""], {}, "must be text of 1..250 characters"),
        (["x" * 251], {}, "must be text of 1..250 characters"),
        ([f"i{number}" for number in range(1001)], {}, "1,000 instances at most"),
    ],
)
def test_invalid_build_request_is_refused_and_changes_nothing(here, names, more, problem):
    with pytest.raises(BadRequest, match=problem):
        here.build(*names, **more)
    assert here.reader.operations(most=9) == []


def test_request_for_250_instances_builds_all_of_them():
    names = [f"i{number}" for number in range(250)]
    with server(None, hosts(5, VCPU=60, MEMORY_MB=600)) as here:
        hands = agents(here, 5)
        operation = here.build(*names)
        here.turn()
        parent = here.reader.operation(operation.id)
        assert (parent.outcome, body_of(parent, Build).sent) == ("done", 250)
        served(here, *hands)
        statuses = here.reader.statuses(most=999)
        assert [status.status for status in statuses] == ["ACTIVE"] * 250
        assert {status.name for status in statuses} == {"i0", *(f"i0-{number}" for number in range(2, 251))}
        assert here.used() == {"VCPU": 250, "MEMORY_MB": 250}
        assert len(here.reader.parts_of(operation.id)) == 250
        assert here.open_operations() == []


def test_no_valid_host_puts_all_instances_in_error_with_the_reason(here):
    agents(here)
    operation = here.build("one", "two", vcpus=2)
    here.turn()
    for name in ("one", "two"):
        status = here.status(name)
        assert (status.status, status.task, status.operation_id) == ("ERROR", "", 0)
        assert status.fault.startswith(NO_VALID_HOST)
        assert here.held(name) is None
    parent = here.reader.operation(operation.id)
    assert (parent.outcome, body_of(parent, Build).problem) == ("failed", here.status("one").fault)
    decision = here.run(lambda _current: here.roost.decision(uuid_named("decision of key")))
    assert not decision.is_granted
    assert here.open_operations() == []


def test_unknown_server_group_is_the_fault(here):
    here.build("one", in_group="nobody")
    here.turn()
    assert here.status("one").status == "ERROR"
    assert here.status("one").fault == f"no such server group: {uuid_named('nobody')}"
    assert here.open_operations() == []


def test_host_without_an_agent_is_released():
    with server(None, ladder(2)) as here:
        here.build("one")
        here.turn()
        assert (here.status("one").status, here.status("one").fault) == ("ERROR", "no agent runs on h0")
        assert (here.held("one"), here.used()["VCPU"]) == (None, 0)
        assert here.open_operations() == []


@pytest.mark.shows("S176")
def test_host_without_an_agent_is_skipped_and_not_an_attempt(here):
    hands = [hand(here, f"h{number}") for number in (1, 2, 3)]
    here.build("one")
    served(here, *hands, script={"h1": [failed("no h1")]})
    assert (here.status("one").status, here.status("one").host, here.held("one")[0]) == ("ACTIVE", "h2", "h2")
    assert attempts(here, "one") == [
        ("h0", "claimed", "no agent runs on h0"),
        ("h1", "claimed", "no h1"),
        ("h2", "claimed", ""),
    ]
    assert failed_builds(here.roost.state) == {"h0": 0, "h1": 1, "h2": 0, "h3": 0}
    assert spawn_of(here, "one")[1].attempt == 2
    assert here.used()["VCPU"] == 1


def test_forced_host_without_an_agent_is_the_fault(here):
    hands = [hand(here, "h1")]
    here.build("one", force_hosts=("h0",))
    served(here, *hands)
    assert (here.status("one").status, here.status("one").fault) == ("ERROR", "no agent runs on h0")
    assert here.used()["VCPU"] == 0


def test_agent_that_registers_after_the_decision_builds_the_instance(here):
    here.build("one")
    conductor = here.conductor("one")
    while here.status("one").task != "spawning":
        assert conductor.turn()
    h0 = hand(here, "h0")
    served(here, h0)
    assert (here.status("one").status, attempts(here, "one")) == ("ACTIVE", [("h0", "claimed", "")])


@pytest.mark.shows("S176")
def test_failed_build_claims_the_next_alternate_and_orders_it_there(here):
    hands = agents(here)
    here.build("one")
    here.turn()
    h0, h1, *_ = hands
    (order,) = h0.poll().orders
    h0.act(order, failed("no network"))
    here.turn()
    assert (here.held("one")[0], here.status("one").host) == ("h1", "h1")
    (second,) = h1.poll().orders
    assert (second.number, second.turn) == (2, order.turn)
    assert second.act.guest.allocations == {uuid_named("h1"): {"VCPU": 1, "MEMORY_MB": 1}}
    served(here, *hands)
    assert here.status("one").status == "ACTIVE"
    assert attempts(here, "one") == [("h0", "claimed", "no network"), ("h1", "claimed", "")]
    assert ("spawn.failed", {"host": "h0", "problem": "no network", "next": "h1"}) in here.story("one")
    assert here.used()["VCPU"] == 1


def test_failed_builds_are_counted_on_their_hosts(here):
    hands = agents(here)
    here.build("one")
    served(here, *hands, script={"h0": [failed()], "h1": [failed()]})
    facts = {
        name: here.roost.state.hosts.facts[row].failed_builds for row, name in enumerate(here.roost.state.hosts.names)
    }
    assert facts == {"h0": 1, "h1": 1, "h2": 0, "h3": 0}


@pytest.mark.shows("S176")
def test_fault_has_the_number_of_attempts_and_the_last_error(here):
    hands = agents(here)
    here.build("one")
    served(here, *hands, script={name: [failed(f"no {name}")] for name in ("h0", "h1", "h2")})
    status = here.status("one")
    assert (status.status, status.host, here.held("one")) == ("ERROR", "", None)
    assert status.fault == (
        "Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for instance "
        f"{uuid_named('one')}. Last exception: no h2"
    )
    assert [each[2] for each in attempts(here, "one")] == ["no h0", "no h1", "no h2"]
    assert here.used()["VCPU"] == 0
    assert here.open_operations() == []


def test_fault_reports_that_no_alternate_is_left():
    with server(None, ladder(2)) as here:
        hands = agents(here, 2)
        here.build("one")
        served(here, *hands, script={"h0": [failed()], "h1": [failed()]})
        assert here.status("one").fault == (
            "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for "
            f"instance {uuid_named('one')}."
        )


@pytest.mark.shows("S176")
def test_alternate_without_room_is_skipped(here):
    hands = agents(here)
    here.build("one")
    here.turn()
    here.build("thief", key="thief", force_hosts=("h1",))
    served(here, *hands, script={"h0": [failed("no")]})
    assert here.status("one").host == "h2"
    assert [each[:2] for each in attempts(here, "one")] == [("h0", "claimed"), ("h1", "refused"), ("h2", "claimed")]
    assert here.status("thief").status == "ACTIVE"


def test_alternate_without_an_agent_is_skipped(here):
    hands = [hand(here, name) for name in ("h0", "h2")]
    here.build("one")
    served(here, *hands, script={"h0": [failed("no")]})
    assert attempts(here, "one")[1] == ("h1", "refused", "no agent runs on h1")
    assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h2")


def test_story_has_the_build_error_if_no_alternate_has_an_agent():
    with server(None, ladder(2)) as here:
        hands = [hand(here, "h0")]
        here.build("one")
        served(here, *hands, script={"h0": [failed("no network")]})
        fault = here.status("one").fault
        assert "Exhausted all hosts available" in fault
        last = ("spawn.failed", {"host": "h0", "problem": "no network", "fault": fault})
        assert here.story("one")[-1] == last


def test_alternate_whose_agent_is_gone_is_skipped_at_once(here):
    hands = agents(here)
    here.build("one")
    here.turn()
    hands[1].leave()
    served(here, hands[0], *hands[2:], script={"h0": [failed("no")]})
    assert attempts(here, "one")[1] == ("h1", "refused", "the agent of h1 does not answer")
    assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h2")
    assert failed_builds(here.roost.state)["h1"] == 0


def test_alternate_that_is_not_clean_yet_is_skipped(here):
    hands = agents(here)
    ghost = status(9, uuid=uuid_bytes(uuid_named("ghost")), host="h3", status="ACTIVE", task="")
    here.run(lambda current: current.commit([Item(writes=(), work=(Put(ghost),))]))
    here.build("one")
    here.turn()
    hands[1].guests = {uuid_named("ghost"): "running"}
    assert not hands[1].register().is_ready
    hands[0].answer(hands[0].poll().orders[0], failed("no"))
    here.turn()
    assert attempts(here, "one")[1] == ("h1", "refused", "h1 is back, but not clean yet")
    served(here, *hands)
    assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h2")


def test_build_error_of_a_forced_host_is_the_fault(here):
    hands = agents(here)
    here.build("one", force_hosts=("h0",))
    served(here, *hands, script={"h0": [failed("no network")]})
    assert (here.status("one").status, here.status("one").fault) == ("ERROR", "no network")
    assert here.used()["VCPU"] == 0


def test_attempts_of_an_earlier_request_count(here):
    hands = agents(here)
    here.build("one", retry=Retry(attempts=3))
    served(here, *hands, script={"h0": [failed("no")]})
    assert "Exceeded max scheduling attempts 3" in here.status("one").fault
    here.build("two", key="two", retry=Retry(attempts=4))
    served(here, *hands)
    assert here.status("two").fault.endswith("Last exception: None")


def test_stale_answer_moves_the_build_to_the_next_alternate(here):
    hands = agents(here)
    here.build("one")
    served(here, *hands, script={"h0": [Answer(outcome="stale", problem="a later order was here before it")]})
    assert (here.status("one").status, here.status("one").host) == ("ACTIVE", "h1")


def test_aborted_build_ends_with_the_problem_of_the_host(here):
    hands = agents(here)
    here.build("one")
    served(here, *hands, script={"h0": [Answer(outcome="aborted", problem="the image is broken")]})
    assert (here.status("one").status, here.status("one").fault) == ("ERROR", "the image is broken")
    assert failed_builds(here.roost.state)["h0"] == 1
    assert (here.held("one"), here.used()["VCPU"]) == (None, 0)


def test_host_that_leaves_is_replaced_and_its_order_withdrawn(here):
    h0, h1, *_ = agents(here)
    here.build("one")
    here.turn()
    (order,) = h0.poll().orders
    h0.leave()
    here.turn()
    assert here.reader.order(order.id).state == "withdrawn"
    assert (here.held("one")[0], here.status("one").host) == ("h1", "h1")
    assert h0.answer(order) is False
    served(here, h1)
    assert attempts(here, "one") == [("h0", "claimed", "the agent of h0 does not answer"), ("h1", "claimed", "")]
    h0.guests = {uuid_named("one"): "running"}
    reply = h0.register()
    assert (reply.is_ready, reply.destroy) == (False, (uuid_named("one"),))


def test_late_host_destroys_the_guest_before_the_next_one_is_claimed(here):
    h0, h1, *_ = hands = agents(here)
    here.build("one")
    here.turn()
    (order,) = h0.poll().orders
    here.clock.time_s += 599
    for agent in hands:
        agent.beat()
    assert here.turn() == 0
    here.clock.time_s += 1
    here.turn()
    assert here.held("one")[0] == "h0"
    h0.known = [order.id]
    reply = h0.poll()
    assert (reply.withdrawn, [action(each) for each in reply.orders]) == ((order.id,), ["destroy"])
    here.clock.time_s += 121
    for agent in hands:
        agent.beat()
    here.turn()
    assert here.held("one")[0] == "h0"
    h0.act(reply.orders[0])
    here.turn()
    assert here.held("one")[0] == "h1"
    served(here, h1)
    assert attempts(here, "one")[0][2] == "it was not built within 600 s"
    assert failed_builds(here.roost.state)["h0"] == 1


def test_allocations_stay_if_a_late_host_cannot_destroy_the_guest(here):
    h0, *_ = hands = agents(here)
    here.build("one")
    here.turn()
    here.clock.time_s += 600
    for agent in hands:
        agent.beat()
    here.turn()
    (order,) = [each for each in h0.poll().orders if action(each) == "destroy"]
    h0.answer(order, failed("it hangs"))
    here.turn()
    status = here.status("one")
    assert (status.status, status.host, here.held("one")[0]) == ("ERROR", "h0", "h0")
    assert status.fault == "it was not built within 600 s; and h0 could not destroy it: it hangs"
    assert failed_builds(here.roost.state)["h0"] == 1
    here.delete("one")
    served(here, *hands)
    assert (here.status("one").status, here.used()["VCPU"]) == ("DELETED", 0)


def test_instance_that_lost_its_claim_during_the_build_ends_in_error(here):
    h0, *_ = hands = agents(here)
    here.build("one")
    here.turn()
    here.run(lambda _current: here.roost.work([Departure(instance_uuids=(uuid_named("one"),))]))
    served(here, *hands)
    assert here.status("one").status == "ERROR"
    assert here.status("one").fault == f"the instance {uuid_named('one')} is not there any more"
    assert h0.guests == {}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"body": b"\xc1"}, "operation 1 cannot be understood"),
        ({"body": b"\xc1", "step": "send"}, "operation 1 cannot be understood"),
        ({"kind": "teleport"}, "operation 1 is a 'teleport', which this program does not know"),
    ],
)
def test_malformed_operation_is_postponed_and_others_continue(here, capfd, changes, problem):
    hands = agents(here)
    bad = here.build("bad", key="bad")
    here.build("one")
    row = msgspec.structs.replace(here.reader.operation(bad.id), version=2, **changes)
    here.run(lambda current: current.commit([Item(writes=(), work=(Put(row, 1),))]))
    served(here, *hands)
    assert here.status("one").status == "ACTIVE"
    assert here.reader.operation(bad.id).due_at_s == here.clock.now_s() + 30
    assert problem in capfd.readouterr().err


def test_every_order_has_the_topology_and_invalid_extra_specs_fail(here):
    h0, h1, *_ = agents(here)
    specs = {"hw:numa_nodes": "1", "hw:mem_page_size": "small"}
    here.build("one", extra_specs=specs)
    here.turn()
    (order,) = h0.poll().orders
    assert len(order.act.guest.topology.cells) == 1
    h0.act(order, failed())
    here.turn()
    assert h1.poll().orders[0].act.guest.topology == order.act.guest.topology
    here.build("two", key="two", extra_specs={"hw:numa_nodes": "many"})
    here.turn()
    assert here.status("two").status == "ERROR"
    assert "hw:numa_nodes" in here.status("two").fault
    assert here.used()["VCPU"] == 1


def test_claims_of_a_missing_decision_are_released(here, monkeypatch):
    agents(here)
    monkeypatch.setattr("roost.conductor.steps.build.PIECE", 1)
    here.build("one", "two")

    def raise_not_found(uuid):
        raise NotFound("decision", uuid)

    monkeypatch.setattr(here.roost, "decision", raise_not_found)
    here.turn()
    assert [here.status(name).status for name in ("one", "two")] == ["ERROR", "ERROR"]
    assert here.status("one").fault == f"no such decision: {uuid_named('decision of key')}"
    assert (here.used()["VCPU"], here.open_operations()) == (0, [])


@pytest.mark.shows("S163", "S175")
def test_each_cell_has_its_conductor():
    fleet = joined(host("east", facts=HostFacts(cell="east")), host("west", facts=HostFacts(cell="west")))
    with server(None, fleet, settings=settings_of()) as here:
        east, west = hand(here, "east"), hand(here, "west")
        here.build("one", force_hosts=("east",))
        here.build("two", key="two", force_hosts=("west",))
        while here.conductor("super", cells=[""]).turn():
            pass
        for agent in (east, west):
            (order,) = agent.poll().orders
            agent.act(order)
        here.conductor("east", cells=["east"]).turn()
        assert [here.status(name).status for name in ("one", "two")] == ["ACTIVE", "BUILD"]
        here.conductor("west", cells=["west"]).turn()
        assert here.status("two").status == "ACTIVE"
        assert (here.status("two").cell, attempts(here, "two")) == ("west", [("west", "claimed", "")])
