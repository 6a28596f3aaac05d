"""Which requests weighers observe, and when their documents are written."""

import msgspec
import pytest

from roost.app import Roost
from roost.errors import BadSettings
from roost.model.fleet import Departure
from roost.model.request import Move, Retry
from roost.scheduler import registry
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.framework.sandbox import sandbox_weigher
from roost.scheduler.pipeline.observations import Observations, next_refresh
from roost.scheduler.weighers.gpu_value import GpuValue, GpuValueOptions
from roost.store.memory_store import MemoryStore
from tests.support.fleets.gpu_fleets import GPU, gpu_fleet, gpu_request, gpu_settings, mixed_requests
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import roost_on, roost_with

NAME = f"gpu_value {GPU}"


def learned_of(roost):
    return roost.state.lessons.get(NAME)


def pieces_of(roost):
    return msgspec.json.decode(learned_of(roost).body)["pieces"]


def fill(roost, count):
    """Send further requests for a third of a GPU."""
    for _ in range(count):
        roost.work([gpu_request(320)])


def test_documents_are_due_at_twice_the_requests_then_every_ten_thousand():
    due, found = 0, []
    for _ in range(11):
        due = next_refresh(due)
        found.append(due)
    assert found == [100, 200, 400, 800, 1600, 3200, 6400, 12800, 22800, 32800, 42800]
    assert next_refresh(150) == 200
    assert next_refresh(30000) == 32800


def test_the_first_document_comes_after_a_hundred_requests_for_gpus():
    roost = roost_with(gpu_fleet(20), settings=gpu_settings())
    fill(roost, 99)
    roost.work([gpu_request(0)] * 5)
    assert learned_of(roost) is None
    fill(roost, 1)
    assert (learned_of(roost).version, learned_of(roost).requests) == (0, 100)
    assert pieces_of(roost) == {"320": 100}


def test_granted_and_refused_requests_count_with_all_their_instances():
    roost = roost_with(gpu_fleet(2, gpus=2), settings=gpu_settings())
    for _ in range(50):
        roost.work([gpu_request(500, count=2), gpu_request(1000, gpus=8)])
    assert {decision.outcome for decision in roost.decisions(100)} == {"granted", "refused"}
    assert learned_of(roost).requests == 100
    assert pieces_of(roost) == {"500": 100, "1000": 400}


def test_further_attempts_for_the_same_instances_do_not_count():
    roost = roost_with(gpu_fleet(1), settings=gpu_settings())
    refused = gpu_request(1000, gpus=8, instance_uuids=(uuid_named("refused"),))
    for _ in range(5):
        assert not roost.decide(refused).is_granted
    rebuilt = gpu_request(810, retry=Retry(attempts=2))
    assert roost.decide(rebuilt).is_granted
    fill(roost, 98)
    assert learned_of(roost) is None
    fill(roost, 1)
    assert pieces_of(roost) == {"320": 99, "1000": 8}


def test_moves_do_not_count():
    roost = roost_with(gpu_fleet(20), settings=gpu_settings())
    fill(roost, 99)
    decision = roost.decisions(1)[0]
    move = Move(instance_uuid=decision.picks[0].instance_uuid)
    assert roost.decide(msgspec.structs.replace(gpu_request(320), move=move)).is_granted
    assert learned_of(roost) is None
    fill(roost, 1)
    assert learned_of(roost).requests == 100


def test_dry_runs_do_not_count():
    roost = roost_with(gpu_fleet(20), settings=gpu_settings())
    for _ in range(150):
        roost.decide(gpu_request(320), dry_run=True)
    fill(roost, 99)
    assert learned_of(roost) is None


def test_a_weigher_that_is_off_learns_nothing():
    roost = roost_with(gpu_fleet(20), settings=gpu_settings(gpu_value_weight_multiplier=0.0))
    fill(roost, 100)
    assert learned_of(roost) is None


def test_stored_decisions_count_when_the_weigher_is_switched_on():
    roost = roost_with(gpu_fleet(20), settings=gpu_settings(gpu_value_weight_multiplier=0.0))
    fill(roost, 120)
    roost.use(gpu_settings())
    roost.work([Departure(instance_uuids=())])
    assert learned_of(roost).requests == 120
    fill(roost, 79)
    assert learned_of(roost).version == 0
    fill(roost, 1)
    assert (learned_of(roost).version, learned_of(roost).requests) == (1, 200)


def test_a_document_of_another_process_replaces_counts_that_it_includes():
    """The second process starts before the first document, so it finds the decisions of the first one in the store."""
    store = MemoryStore()
    first = roost_with(gpu_fleet(30), store=store, settings=gpu_settings())
    fill(first, 60)
    second = roost_on(store.peer(), settings=gpu_settings(), seed=2)
    fill(second, 40)
    assert learned_of(second).requests == 100
    fill(first, 70)
    assert first.state.lessons == second.state.lessons or learned_of(first).version == 0
    assert learned_of(first).requests == 100
    fill(first, 30)
    second.scheduler.work([])
    assert learned_of(first).requests == learned_of(second).requests == 200
    assert learned_of(first) == learned_of(second)


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_weigher_does_not_learn_about_the_inventories_of_a_remote_placement(is_remote):
    roost = roost_with(gpu_fleet(1))
    weighers = registry.build(gpu_settings()).weighers
    if not is_remote:
        Observations(weighers, placement=roost.placement, store=roost.fleet.lessons)
        return
    with pytest.raises(
        BadSettings, match=r"gpu_value: cannot learn with a remote Placement.*: set its multiplier to 0"
    ):
        Observations(weighers, placement=roost.placement, store=roost.fleet.lessons, is_remote=True)
    off = registry.build(gpu_settings(gpu_value_weight_multiplier=0.0)).weighers
    Observations(off, placement=roost.placement, store=roost.fleet.lessons, is_remote=True)


def test_forks_learn_without_effect_on_their_origin():
    roost = roost_with(gpu_fleet(20), settings=gpu_settings())
    fill(roost, 99)
    fork = roost.fork()
    fork.work(mixed_requests(300, 1))
    assert isinstance(fork, Roost)
    assert learned_of(fork) is not None
    assert learned_of(roost) is None


@pytest.mark.parametrize(("method", "learns"), [("", True), ("observe", False), ("learn", False)])
def test_a_third_party_weigher_learns_unless_it_fails(method, learns):
    def fail(*_):
        raise ZeroDivisionError

    weigher = GpuValue(GpuValueOptions(gpu_value_weight_multiplier=1.0))
    if method:
        setattr(weigher, method, fail)
    sandboxed, _ = sandbox_weigher(weigher, limit_s=0.0, refuses="host")
    roost = roost_with(gpu_fleet(20))
    roost.use(gpu_settings(), rules=Rules(filters=(), weighers=(sandboxed,)))
    fill(roost, 101)
    assert (learned_of(roost) is not None) == learns
