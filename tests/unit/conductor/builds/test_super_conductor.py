"""The super conductor: it sends instances to cell conductors, and puts the others in ERROR."""

import pytest

from roost.conductor.builds.super_conductor import SuperConductor, orders, specification
from roost.errors import BadRequest, StoreBroken
from roost.model.host import HostFacts
from roost.model.request import Move
from roost.model.work.builds import BuildOrder, Outcome
from roost.simulator.seeded_random import SeededRandom
from tests.support.conductors.builders import ScriptedBuilder, allocations_of, conductor, ladder
from tests.support.databases.racing_stores import BreakableStore
from tests.support.fleets.worlds import host, merge_fleets, roost_with, small_request, uuid_named


def cells(*names):
    """Return two hosts of one VCPU in each cell; the hosts of the first cell are the best."""
    return merge_fleets(
        *(
            host(f"{cell}{number}", VCPU=1, MEMORY_MB=1000 - 10 * at - number, facts=HostFacts(cell=cell))
            for at, cell in enumerate(names)
            for number in range(2)
        )
    )


class RecordingCell:
    """A cell conductor that only records its orders."""

    def __init__(self) -> None:
        self.orders: list[BuildOrder] = []

    def build(self, order: BuildOrder) -> Outcome:
        """See ``roost.conductor.builds.builder_product.Cell``."""
        self.orders.append(order)
        pick = order.picks[0]
        return Outcome(
            instance_uuid=order.instance_uuid, status="ACTIVE", decision_uuid=order.decision_uuid, host=pick.host
        )


class BrokenCell:
    """A cell conductor that always fails."""

    def build(self, order: BuildOrder) -> Outcome:
        """See ``roost.conductor.builds.builder_product.Cell``."""
        raise OSError("the queue is gone")


@pytest.mark.shows("S163", "S175")
def test_instance_goes_to_the_conductor_of_the_cell_of_its_host():
    roost, east, west = roost_with(cells("east", "west")), RecordingCell(), RecordingCell()
    super_conductor = SuperConductor(product=roost, cells={"east": east, "west": west}, random=SeededRandom(7))
    outcomes = super_conductor.build(small_request(count=3, project_id="p"))
    assert [each.host for each in outcomes] == ["east0", "east1", "west0"]
    assert [[pick.host for pick in order.picks] for order in east.orders] == [["east0"], ["east1"]]
    (order,) = west.orders
    assert (order.instance_uuid, order.decision_uuid) == (outcomes[2].instance_uuid, roost.decisions()[0].uuid)
    assert order.request.project_id == "p"


@pytest.mark.shows("S175")
def test_cell_gets_the_hosts_and_their_allocation_requests():
    roost, cell = roost_with(ladder(3, cell="c")), RecordingCell()
    SuperConductor(product=roost, cells={"c": cell}, random=SeededRandom(7)).build(small_request(memory_mb=3))
    (order,) = cell.orders
    assert [(pick.host, pick.cell, pick.allocations) for pick in order.picks] == [
        (name, "c", {uuid_named(name): {"VCPU": 1, "MEMORY_MB": 3}}) for name in ("h0", "h1", "h2")
    ]
    assert allocations_of(roost.state, order.instance_uuid)[0] == "h0"


@pytest.mark.shows("S163")
def test_alternates_never_leave_the_cell():
    roost = roost_with(cells("east", "west"))
    decision = roost.decide(small_request())
    (order,) = orders(small_request(), decision)
    assert [pick.host for pick in order.picks] == ["east0", "east1"]


def test_hosts_in_no_cell_have_a_conductor():
    roost = roost_with(host("lone"), cells("east"))
    outcomes = conductor(roost, ScriptedBuilder()).build(small_request(count=3))
    assert {(each.status, each.cell) for each in outcomes} == {("ACTIVE", ""), ("ACTIVE", "east")}


def test_no_valid_host_puts_every_instance_in_error_with_the_reason():
    roost, builder = roost_with(ladder(2)), ScriptedBuilder()
    outcomes = conductor(roost, builder).build(small_request(count=3))
    assert [each.status for each in outcomes] == ["ERROR"] * 3
    (decision,) = roost.decisions()
    assert {each.fault for each in outcomes} == {f"No valid host was found. {decision.reason}"}
    assert {each.decision_uuid for each in outcomes} == {decision.uuid}
    assert len({each.instance_uuid for each in outcomes}) == 3
    assert (builder.tried, roost.utilisation()["VCPU"]) == ([], (0, 2))


def test_request_for_an_unknown_server_group_ends_in_error():
    roost = roost_with(ladder(1))
    (outcome,) = conductor(roost, ScriptedBuilder()).build(small_request(in_group="nowhere"))
    assert (outcome.status, outcome.fault) == ("ERROR", f"no such server group: {uuid_named('nowhere')}")


def test_existing_instance_keeps_its_allocations():
    roost, uuid = roost_with(ladder(2)), uuid_named("mine")
    roost.decide(small_request(instance_uuids=(uuid,)))
    (outcome,) = conductor(roost, ScriptedBuilder()).build(small_request(instance_uuids=(uuid,)))
    assert (outcome.status, outcome.fault) == ("ERROR", f"the instance {uuid} exists already")
    assert allocations_of(roost.state, uuid)[0] == "h0"


def test_host_in_a_cell_without_a_conductor_is_released():
    roost, builder = roost_with(cells("east", "west")), ScriptedBuilder()
    outcomes = conductor(roost, builder, cells=["west"]).build(small_request(count=4))
    assert [(each.status, each.host) for each in outcomes] == [
        ("ERROR", ""),
        ("ERROR", ""),
        ("ACTIVE", "west0"),
        ("ACTIVE", "west1"),
    ]
    assert outcomes[0].fault == "east0 is in cell east, and no conductor builds there"
    assert roost.utilisation()["VCPU"] == (2, 4)


def test_fault_names_the_host_in_no_cell_without_a_conductor():
    (outcome,) = conductor(roost_with(ladder(1)), ScriptedBuilder(), cells=[]).build(small_request())
    assert outcome.fault == "h0 is in no cell, and no conductor builds there"


def test_failing_cell_leaves_no_claim_and_spares_other_instances():
    roost = roost_with(cells("east", "west"))
    super_conductor = SuperConductor(
        product=roost, cells={"east": BrokenCell(), "west": RecordingCell()}, random=SeededRandom(7)
    )
    outcomes = super_conductor.build(small_request(count=3))
    assert [each.status for each in outcomes] == ["ERROR", "ERROR", "ACTIVE"]
    assert outcomes[0].fault == "OSError: the queue is gone"
    assert roost.utilisation()["VCPU"] == (1, 4)


def test_store_failure_ends_in_error_without_a_claim():
    store = BreakableStore()
    roost = roost_with(ladder(2), store=store)
    store.is_broken = True
    (outcome,) = conductor(roost, ScriptedBuilder()).build(small_request())
    assert (outcome.status, outcome.fault, outcome.unreleased) == ("ERROR", "the disk is full", "")
    store.is_broken = False
    roost.work([])
    assert roost.utilisation()["VCPU"] == (0, 2)


class LateStore(BreakableStore):
    """A store that loses the reply to a commit of claims; decisions cannot be read while ``is_unreadable``."""

    is_unreadable = False

    def commit(self, items):
        """See ``Store.commit``."""
        is_broken, self.is_broken = self.is_broken, False
        committed = super().commit(items)
        if is_broken:
            raise StoreBroken("the connection is gone")
        return committed

    def evidence(self, *, uuid=None, newest=20):
        """See ``Store.evidence``."""
        if self.is_unreadable:
            raise StoreBroken("the disk is gone")
        return super().evidence(uuid=uuid, newest=newest)


def test_claim_with_a_lost_reply_is_released():
    store = LateStore()
    roost = roost_with(ladder(2), store=store)
    roost.decide(small_request())  # Stores the documents of the request in an earlier commit.
    store.is_broken = True
    (outcome,) = conductor(roost, ScriptedBuilder()).build(small_request())
    assert (outcome.status, outcome.fault, outcome.unreleased) == ("ERROR", "the connection is gone", "")
    assert roost.decision(outcome.decision_uuid).is_granted
    assert roost.utilisation()["VCPU"] == (1, 2)


def test_claim_that_cannot_be_verified_is_reported():
    store = LateStore()
    roost = roost_with(ladder(2), store=store)
    store.is_broken = store.is_unreadable = True
    (outcome,) = conductor(roost, ScriptedBuilder()).build(small_request())
    assert outcome.unreleased == "it is unknown whether resources were claimed: the disk is gone"


def test_request_for_a_move_cannot_be_built():
    with pytest.raises(BadRequest, match="a build cannot include a move"):
        specification(small_request(move=Move(instance_uuid=uuid_named("mine"))), SeededRandom())


def test_instance_uuids_of_the_request_are_kept():
    uuids = (uuid_named("a"), uuid_named("b"))
    assert specification(small_request(count=2, instance_uuids=uuids), SeededRandom()).request.instance_uuids == uuids
    spec = specification(small_request(count=2), SeededRandom())
    assert len({spec.decision_uuid, *spec.request.instance_uuids}) == 3
