"""A refusal is never wrong, whatever another process commits between a choice and its commit."""

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
    """Two processes on one database; the first is interrupted by what the second does."""

    def __init__(
        self, hosts: int, *, vcpus: int, settings: Settings | None = None, groups: Sequence[ServerGroup] = ()
    ) -> None:
        self.store = RacyStore()
        settings = settings or Settings()
        self.first = Roost(self.store, settings)
        self.first.install(fleet(hosts, vcpus=vcpus, groups=groups))
        self.second = Roost(self.store.peer(), settings)

    def meddle(self, *acts: Callable[[Roost], object]) -> None:
        """Let the second process act before each of the first's next commits."""
        self.store.rivals = [lambda act=act: act(self.second) for act in acts]


def outcomes(results: Sequence[object]) -> list[object]:
    return [getattr(result, "outcome", result) for result in results]


def test_a_refusal_never_rests_on_a_claim_that_was_lost():
    two = Pair(1, vcpus=8)
    two.meddle(lambda other: other.decide(request(1)))
    large, small = two.first.work([request(8), request(1)])
    assert outcomes([large, small]) == ["refused", "granted"]


def test_a_refusal_sees_what_was_given_back_before_the_claims_ahead_of_it_were_made():
    two = Pair(1, vcpus=4)
    held = two.second.decide(request(2)).picks[0].instance_uuid
    two.meddle(lambda other: other.work([Departure(instance_uuids=(held,))]))
    assert outcomes(two.first.work([request(2), request(2)])) == ["granted", "granted"]


def test_a_refusal_in_a_later_group_sees_what_was_given_back_since_the_first():
    settings = Settings(store=StoreSettings(group_max=2))
    two = Pair(1, vcpus=4, settings=settings)
    held = two.second.decide(request(2)).picks[0].instance_uuid
    two.meddle(lambda other: other.work([Departure(instance_uuids=(held,))]))
    acts = [request(1), request(1), request(2), request(1)]
    assert outcomes(two.first.work(acts)) == ["granted", "granted", "granted", "refused"]


def test_acts_keep_their_order_while_nobody_else_writes():
    two = Pair(1, vcpus=4)
    held = two.first.decide(request(4)).picks[0].instance_uuid
    acts = [request(1), Departure(instance_uuids=(held,)), request(4), request(1)]
    assert outcomes(two.first.work(acts)) == ["refused", None, "granted", "refused"]


def test_each_answer_has_one_record_whatever_was_lost_on_the_way():
    two = Pair(1, vcpus=8)
    two.meddle(lambda other: other.decide(request(1)))
    answers = two.first.work([request(8), request(8), request(1), request(9)])
    own = {decision.uuid: decision.outcome for decision in answers}
    stored = {row.uuid.hex(): row.outcome for row in two.store.evidence(newest=100)}
    assert len(stored) == len(answers) + 1
    assert {uuid.replace("-", ""): outcome for uuid, outcome in own.items()}.items() <= stored.items()


def test_one_lost_race_of_many_instances_is_one_race():
    two = Pair(121, vcpus=1)
    two.meddle(lambda other: other.decide(request(1, force_hosts=("host-60",))))
    decision = two.first.decide(request(1, count=120))
    assert decision.is_granted
    assert decision.conflicts == ["host-60"]


def test_the_error_of_one_act_leaves_the_others_alone():
    two = Pair(1, vcpus=4)
    twin = request(1, instance_uuids=(uuid_of("twin"),))
    results = two.first.outcomes(
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
    assert two.first.utilisation()["VCPU"] == (3, 4)
