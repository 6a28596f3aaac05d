"""What is said of generated requests on generated fleets is what then happens."""

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
    """The same seed whenever it is asked."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._steady = seed

    def seed(self) -> int:
        """Return it."""
        return self._steady


# One request in so many is asked how many more of it fit.
_COUNTED = 100


def timeless(decision):
    """Return a decision without the time it took."""
    return msgspec.structs.replace(decision, search_s=0.0, rank_s=0.0)


def keep_promises(seed: int, *, requests: int) -> Counter[str]:
    """Serve a generated workload, and hold everything that is said before against what happens."""
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
            count_more(roost, request, counts)
        rehearsed = roost.fork(random=SeededRandom(number)).decide(request)
        if not rehearsed.is_granted:
            explain(roost, request, counts)
        roost._random = roost.scheduler._random = SeededRandom(number)
        real = roost.decide(request)
        assert timeless(rehearsed) == timeless(real)
        counts[real.outcome] += 1
    return counts


def explain(roost: Roost, request: Request, counts: Counter[str]) -> None:
    """Make every change that is offered, and one a unit smaller; empty the fleet."""
    chance = SteadyRandom(roost._random.seed())
    roost._random = roost.scheduler._random = chance
    told = roost.explain(request)
    if not told.reason:
        assert roost.fork(random=chance).decide(request).is_granted
        return
    for change in told.changes:
        assert fits(roost, change.request, chance), change.text
        if change.kind == "amount":
            assert not fits(roost, one_more(roost, request, change), chance), change.text
        counts[f"change of {change.kind}"] += 1
    assert told.never is not None
    empty = roost.without_consumers(random=chance).decide(msgspec.structs.replace(request, instance_uuids=()))
    assert told.never.could_fit == empty.is_granted
    counts["could fit when empty" if told.never.could_fit else "could never fit"] += 1


def fits(roost: Roost, request: Request, chance: SeededRandom) -> bool:
    try:
        return roost.fork(random=chance).decide(msgspec.structs.replace(request, instance_uuids=())).is_granted
    except (BadRequest, NotFound):
        return False


def one_more(roost: Roost, request: Request, change: Change) -> Request:
    """Return the request that asks for a unit more than the change of an amount."""
    query = roost.scheduler.shape(msgspec.structs.replace(request, count=1, instance_uuids=())).query
    amount = int(change.text.partition(" ")[0].replace(",", ""))
    for asked in relaxations.query_amounts(query):
        if relaxations.reduce_amount(request, asked, amount).text == change.text:
            return relaxations.reduce_amount(request, asked, amount + 1).request
    raise AssertionError(change.text)


def count_more(roost: Roost, request: Request, counts: Counter[str]) -> None:
    """Place one after the other until none fits."""
    one = msgspec.structs.replace(request, count=1, instance_uuids=())
    said = roost.fork(random=SeededRandom(0)).capacity(one, by=()).count
    fork, placed = roost.fork(random=SeededRandom(0)), 0
    while fork.decide(one).is_granted:
        placed += 1
    assert said == placed
    counts["capacities"] += 1


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_said_is_what_happens(seed):
    counts = keep_promises(seed, requests=150)
    assert counts["granted"]
    assert counts["refused"]


@pytest.mark.soak
def test_what_is_said_of_ten_thousand_requests_is_what_happens(capsys):
    counts: Counter[str] = Counter()
    for seed in range(20):
        counts += keep_promises(100 + seed, requests=500)
    with capsys.disabled():
        print(f"\n{dict(counts)}")
    assert counts["granted"] + counts["refused"] == 10_000
