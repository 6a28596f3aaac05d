"""Dry runs, explanations and capacities of generated requests on generated fleets come true."""

from collections import Counter
from random import Random

import msgspec
import pytest

from roost.app import Roost
from roost.errors import BadRequest, NotFound
from roost.model.evidence.explain import Change
from roost.model.fleet import Departure
from roost.model.request import Request
from roost.scheduler.explain import relaxations
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.support.fleets.worlds import SeededRandom, roost_on, settings_of


class SteadyRandom(SeededRandom):
    """A source of randomness that always returns the same seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._steady = seed

    def seed(self) -> int:
        """Return the seed."""
        return self._steady


# Capacity is checked for one in this number of requests.
_COUNTED = 100


def timeless(decision):
    """Return a decision without its durations."""
    return msgspec.structs.replace(decision, search_s=0.0, rank_s=0.0)


def check_predictions(seed: int, *, requests: int) -> Counter[str]:
    """Serve a generated workload, and compare every prediction with the result."""
    draw = Random(seed)
    recipe = Recipe(hosts=draw.choice((8, 20, 50)), requests=requests, seed=seed)
    workload = generate(recipe, Options(has_departures=draw.random() < 0.5))
    roost = roost_on(settings=settings_of(host_subset_size=draw.choice((1, 1, 3)), shuffle=draw.random() < 0.3))
    roost.install(workload.fleet)
    counts: Counter[str] = Counter()
    for number, event in enumerate(workload.events):
        if isinstance(event.act, Departure):
            roost.work([event.act])
            continue
        request = event.act
        if number % _COUNTED == 0:
            check_capacity(roost, request, counts)
        dry_run = roost.fork(random=SeededRandom(number)).decide(request)
        if not dry_run.is_granted:
            check_explanation(roost, request, counts)
        roost._random = roost.scheduler._random = SeededRandom(number)
        real = roost.decide(request)
        assert timeless(dry_run) == timeless(real)
        counts[real.outcome] += 1
    return counts


def check_explanation(roost: Roost, request: Request, counts: Counter[str]) -> None:
    """Try every offered change, and the change with one unit more; then try an empty fleet."""
    chance = SteadyRandom(roost._random.seed())
    roost._random = roost.scheduler._random = chance
    explanation = roost.explain(request)
    if not explanation.reason:
        assert roost.fork(random=chance).decide(request).is_granted
        return
    for change in explanation.changes:
        assert fits(roost, change.request, chance), change.text
        if change.kind == "amount":
            assert not fits(roost, one_more(roost, request, change), chance), change.text
        counts[f"change of {change.kind}"] += 1
    assert explanation.never is not None
    empty = roost.without_consumers(random=chance).decide(msgspec.structs.replace(request, instance_uuids=()))
    assert explanation.never.could_fit == empty.is_granted
    counts["could fit when empty" if explanation.never.could_fit else "could never fit"] += 1


def fits(roost: Roost, request: Request, chance: SeededRandom) -> bool:
    try:
        return roost.fork(random=chance).decide(msgspec.structs.replace(request, instance_uuids=())).is_granted
    except (BadRequest, NotFound):
        return False


def one_more(roost: Roost, request: Request, change: Change) -> Request:
    """Return the request with one unit more than an offered change of an amount."""
    query = roost.scheduler.shape(msgspec.structs.replace(request, count=1, instance_uuids=())).query
    amount = int(change.text.partition(" ")[0].replace(",", ""))
    for part in relaxations.query_amounts(query):
        if relaxations.reduce_amount(request, part, amount).text == change.text:
            return relaxations.reduce_amount(request, part, amount + 1).request
    raise AssertionError(change.text)


def check_capacity(roost: Roost, request: Request, counts: Counter[str]) -> None:
    """Compare a capacity with placing instances one by one."""
    one = msgspec.structs.replace(request, count=1, instance_uuids=())
    capacity = roost.fork(random=SeededRandom(0)).capacity(one, by=()).count
    fork, placed = roost.fork(random=SeededRandom(0)), 0
    while fork.decide(one).is_granted:
        placed += 1
    assert capacity == placed
    counts["capacities"] += 1


@pytest.mark.parametrize("seed", [1, 2])
def test_predictions_come_true(seed):
    counts = check_predictions(seed, requests=150)
    assert counts["granted"]
    assert counts["refused"]


@pytest.mark.soak
def test_predictions_for_ten_thousand_requests_come_true(capsys):
    counts: Counter[str] = Counter()
    for seed in range(20):
        counts += check_predictions(100 + seed, requests=500)
    with capsys.disabled():
        print(f"\n{dict(counts)}")
    assert counts["granted"] + counts["refused"] == 10_000
