"""A refusal is never wrong, even if another process commits between a choice and its commit."""

from collections.abc import Callable, Sequence

from roost.app import Roost
from roost.errors import BadRequest, Conflict, NotFound
from roost.model.fleet import Departure
from roost.model.group import ServerGroup
from roost.model.settings.roost_settings import Settings
from roost.model.settings.roost_settings import Store as StoreSettings
from roost.simulator.stable_uuids import uuid_of
from tests.support.databases.racing_stores import RacyStore
from tests.support.fleets.products import fleet, request


class Pair:
    """Two processes on one database; the second acts between commits of the first."""

    def __init__(
        self, hosts: int, *, vcpus: int, settings: Settings | None = None, groups: Sequence[ServerGroup] = ()
    ) -> None:
        self.store = RacyStore()
        settings = settings or Settings()
        self.first = Roost(self.store, settings)
        self.first.install(fleet(hosts, vcpus=vcpus, groups=groups))
        self.second = Roost(self.store.peer(), settings)

    def interrupt(self, *acts: Callable[[Roost], object]) -> None:
        """Run one act of the second process before each of the next commits of the first."""
        self.store.rivals = [lambda act=act: act(self.second) for act in acts]


def outcomes(results: Sequence[object]) -> list[object]:
    return [getattr(result, "outcome", result) for result in results]


def test_refusal_is_not_based_on_a_lost_claim():
    pair = Pair(1, vcpus=8)
    pair.interrupt(lambda other: other.decide(request(1)))
    large, small = pair.first.work([request(8), request(1)])
    assert outcomes([large, small]) == ["refused", "granted"]


def test_second_request_sees_a_release_before_the_first_claim():
    pair = Pair(1, vcpus=4)
    instance_uuid = pair.second.decide(request(2)).picks[0].instance_uuid
    pair.interrupt(lambda other: other.work([Departure(instance_uuids=(instance_uuid,))]))
    assert outcomes(pair.first.work([request(2), request(2)])) == ["granted", "granted"]


def test_later_group_commit_sees_a_concurrent_release():
    settings = Settings(store=StoreSettings(group_max=2))
    pair = Pair(1, vcpus=4, settings=settings)
    instance_uuid = pair.second.decide(request(2)).picks[0].instance_uuid
    pair.interrupt(lambda other: other.work([Departure(instance_uuids=(instance_uuid,))]))
    acts = [request(1), request(1), request(2), request(1)]
    assert outcomes(pair.first.work(acts)) == ["granted", "granted", "granted", "refused"]


def test_acts_keep_their_order_without_other_writers():
    pair = Pair(1, vcpus=4)
    instance_uuid = pair.first.decide(request(4)).picks[0].instance_uuid
    acts = [request(1), Departure(instance_uuids=(instance_uuid,)), request(4), request(1)]
    assert outcomes(pair.first.work(acts)) == ["refused", None, "granted", "refused"]


def test_each_decision_has_one_evidence_record_after_a_lost_race():
    pair = Pair(1, vcpus=8)
    pair.interrupt(lambda other: other.decide(request(1)))
    decisions = pair.first.work([request(8), request(8), request(1), request(9)])
    outcomes_by_uuid = {decision.uuid: decision.outcome for decision in decisions}
    stored_outcomes = {row.uuid.hex(): row.outcome for row in pair.store.evidence(newest=100)}
    assert len(stored_outcomes) == len(decisions) + 1
    assert {
        uuid.replace("-", ""): outcome for uuid, outcome in outcomes_by_uuid.items()
    }.items() <= stored_outcomes.items()


def test_lost_race_of_many_instances_is_one_conflict():
    pair = Pair(121, vcpus=1)
    pair.interrupt(lambda other: other.decide(request(1, force_hosts=("host-60",))))
    decision = pair.first.decide(request(1, count=120))
    assert decision.is_granted
    assert decision.conflicts == ["host-60"]


def test_error_of_one_act_does_not_affect_the_others():
    pair = Pair(1, vcpus=4)
    twin = request(1, instance_uuids=(uuid_of("twin"),))
    results = pair.first.outcomes(
        [
            request(1),
            request(1, group=uuid_of("nobody")),
            request(1, availability_zone="nowhere"),
            request(1, instance_uuids=("no uuid",)),
            twin,
            twin,
            request(1),
        ]
    )
    kinds = [getattr(result, "outcome", type(result)) for result in results]
    assert kinds == ["granted", NotFound, BadRequest, BadRequest, "granted", Conflict, "granted"]
    assert pair.first.utilisation()["VCPU"] == (3, 4)
