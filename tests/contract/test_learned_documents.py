"""What weighers learn outlives restarts, is the same in all processes, and lets decisions replay."""

import msgspec
import pytest

from roost.app import Roost, open_roost
from roost.model.evidence.decision import Decision
from roost.simulator.seeded_random import SeededRandom
from roost.store import snapshot_program
from tests.contract.races import batches, race
from tests.contract.replays import LOST_RACE, replay_all
from tests.contract.stores import MemoryWorld
from tests.support.fleets.gpu_fleets import GPU, gpu_fleet, gpu_settings, mixed_requests
from tests.support.fleets.room_fleets import room_settings
from tests.support.fleets.worlds import FixedClock

pytestmark = pytest.mark.long

NAME = f"gpu_value {GPU}"
SIZE = 7  # acts per call; requests are counted at its end


# Settings with one learning weigher alone, by the name of its document.
LEARNERS = {NAME: gpu_settings, "room": room_settings}


@pytest.fixture(params=LEARNERS)
def name(request):
    """Return the name of a weigher's document."""
    return request.param


def open_on(world, name, *, seed):
    """Open a process that prefers no part of the fleet, so that other processes on the database change no decision."""
    settings = LEARNERS[name]()
    settings = msgspec.structs.replace(settings, scheduler=msgspec.structs.replace(settings.scheduler, partition="off"))
    return Roost(world.open(), settings, clock=FixedClock(), random=SeededRandom(seed))


def places(decisions: list[Decision]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Return the outcome, the hosts and the providers of each decision."""
    return [(each.outcome, [(pick.host, sorted(pick.allocations)) for pick in each.picks]) for each in decisions]


def decide_all(roost, requests):
    return [decision for acts in batches(requests, SIZE) for decision in roost.work(acts)]


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "killed"])
def test_restarts_change_no_decision(world, name, is_closed):
    """The restarts are between two documents, so the new process has to count stored decisions."""
    requests = mixed_requests(420, 5)
    plain = open_on(MemoryWorld(), name, seed=1)
    plain.install(gpu_fleet(12))
    expected = decide_all(plain, requests)
    roost = open_on(world, name, seed=1)
    roost.install(gpu_fleet(12))
    found = []
    for part in range(0, len(requests), 70):
        found += decide_all(roost, requests[part : part + 70])
        if is_closed and not isinstance(world, MemoryWorld):
            roost.close()
        roost = open_on(world, name, seed=part + 2)
    roost.scheduler.work([])
    assert places(found) == places(expected)
    assert {decision.outcome for decision in found} == {"granted", "refused"}
    lesson, other = roost.state.lessons[name], plain.state.lessons[name]
    assert (lesson.version, lesson.requests, lesson.body) == (other.version, other.requests, other.body)
    assert lesson.version >= 1


def test_decisions_before_and_after_each_refresh_replay(world, name):
    roost = open_on(world, name, seed=3)
    roost.install(gpu_fleet(12))
    decisions = decide_all(roost, mixed_requests(150, 8))
    if not isinstance(world, MemoryWorld):
        snapshot_program.write_snapshot(world.url)
    decisions += decide_all(roost, mixed_requests(150, 9))
    assert roost.state.lessons[name].version >= 1
    versions = set()
    for decision in decisions:
        past = roost.as_of(decision.uuid)
        lesson = past.state.lessons.get(name)
        versions.add(-1 if lesson is None else lesson.version)
        found = roost.replay(decision.uuid)
        assert found.is_same, (found.fields, found.stored, found.again)
    assert versions == {-1, 0, 1}


def test_all_processes_use_the_same_document(postgres_url, tmp_path):
    config = tmp_path / "roost.toml"
    config.write_text(
        f'[store]\nurl = "{postgres_url}"\n[filter_scheduler]\nenabled_filters = []\n'
        'weight_classes = ["gpu_value"]\ngpu_value_weight_multiplier = 1.0\n'
    )
    with open_roost(config) as roost:
        roost.install(gpu_fleet(40))
    answers = race(config, [batches(mixed_requests(220, seed), 5) for seed in (1, 2)])
    assert [len(each) for each in answers] == [220, 220]
    with open_roost(config) as one, open_roost(config) as other:
        one.scheduler.work([])
        other.scheduler.work([])
        lesson = one.state.lessons[NAME]
        assert lesson == other.state.lessons[NAME]
        counted = sum(
            any(amount != 0 for amount in _amounts(act)) for seed in (1, 2) for act in mixed_requests(220, seed)
        )
        assert 200 <= lesson.requests <= counted
        counts = replay_all(one, [decision.uuid for decision in one.decisions(60)])
        assert counts.total() == 60
        assert set(counts) <= {"granted", "refused", LOST_RACE}
        assert counts["granted"] + counts["refused"] > 0


def _amounts(request):
    return [group.resources.get(GPU, 0) for group in request.groups]
