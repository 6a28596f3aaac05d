"""Parts of a fleet: owners equal their slow twin, and each decision prefers the part of its process."""

from collections import Counter
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.ranking.rendezvous import owners
from roost.model.evidence.fleet_part import FleetPart, choose_part
from roost.model.fleet import Departure
from roost.model.settings.roost_settings import Scheduler
from roost.store.memory_store import MemoryStore
from tests.reference import fleet_parts
from tests.reference.decision_comparison import compare, first_candidate
from tests.reference.plain_worlds import FILTERS, fleet_of, random_options, random_wish, random_world, request_of
from tests.support.fleets.worlds import hosts, roost_on, roost_with, settings_of, small_request

_NUMBERS = st.integers(0, 2**62 - 1)
_PROCESSES = st.lists(_NUMBERS, min_size=1, max_size=8, unique=True).map(sorted)


def owners_of(host_ids, processes):
    """Return the owning process of each host."""
    return [processes[at] for at in owners(np.array(host_ids, dtype=np.int64), processes).tolist()]


@given(st.lists(_NUMBERS, max_size=20), _PROCESSES)
def test_owners_equal_their_slow_twin(host_ids, processes):
    assert owners_of(host_ids, processes) == [fleet_parts.owner(number, processes) for number in host_ids]


@given(st.lists(_NUMBERS, max_size=50, unique=True), _PROCESSES, _NUMBERS)
def test_a_new_process_takes_hosts_and_others_exchange_none(host_ids, processes, new):
    before, after = owners_of(host_ids, processes), owners_of(host_ids, sorted({*processes, new}))
    assert {now for was, now in zip(before, after, strict=True) if was != now} <= {new}


@pytest.mark.parametrize("count", [1, 3, 7, 15])
def test_a_new_process_takes_about_its_share_and_parts_are_about_equal(count):
    random, host_ids = Random(3), range(1, 10_001)
    numbers = [random.randrange(2**62) for _ in range(count + 1)]
    before, after = owners_of(host_ids, numbers[:-1]), owners_of(host_ids, numbers)
    share = 10_000 / (count + 1)
    moved = sum(was != now for was, now in zip(before, after, strict=True))
    # Five standard deviations of a binomial count.
    assert abs(moved - share) < 5 * share**0.5
    assert all(abs(size - share) < 5 * share**0.5 for size in Counter(after).values())
    assert len(Counter(after)) == count + 1


def serve(seed: int, *, acts: int) -> Counter[bool | None]:
    """Serve the same requests and departures with both schedulers, while processes join and leave."""
    random = Random(seed)
    world = random_world(random)
    options, attempts = random_options(random), random.choice((1, 2, 3, 4))
    roost = roost_on(
        MemoryStore(), settings=settings_of(enabled_filters=FILTERS, max_attempts=attempts, options=options)
    )
    roost.install(fleet_of(world))
    counts = Counter[bool | None]()
    for _ in range(acts):
        if world.instances and random.random() < 0.3:
            uuid = random.choice(sorted(world.instances))
            roost.work([Departure(instance_uuids=(uuid,))])
            fleet_parts.slow.release(world, uuid)
            continue
        own = random.randrange(2**62)
        part = choose_part(own, frozenset({own, *(random.randrange(2**62) for _ in range(random.choice((0, 1, 3))))}))
        roost._current.part = part
        wish = random_wish(random, world)
        decision = roost.decide(request_of(wish))
        twin = {"enabled": FILTERS, "options": options, "attempts": attempts, "first": first_candidate}
        if part is None:
            outcome, is_within = fleet_parts.slow.decide(world, wish, **twin), None
        else:
            rows = zip(roost.state.hosts.names, roost.state.hosts.ids, strict=True)
            names = frozenset(name for name, number in rows if fleet_parts.owner(number, part.processes) == own)
            outcome, is_within = fleet_parts.decide(world, wish, names, **twin)
        compare(world, decision, outcome)
        expected = None if is_within is None else FleetPart(own, part.processes, is_within)
        assert decision.part == expected
        counts[is_within] += 1
        for number, pick in enumerate(decision.picks):
            world.instances[pick.instance_uuid] = world.instances.pop(f"new-{number}")
        if decision.part is not None:
            check_evidence(roost, decision)
    return counts


def check_evidence(roost, decision):
    """A stored decision replays to itself, and its explanation names its host as the best."""
    assert roost.decision(decision.uuid).part == decision.part
    replayed = roost.replay(decision.uuid)
    assert replayed.is_same, replayed.fields
    explanation = roost.why(decision.uuid).explanation
    assert (explanation.left > 0) == decision.is_granted
    if decision.is_granted and decision.count == 1:
        assert explanation.ranking[0].host == decision.picks[0].host


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_decisions_within_parts_equal_those_of_the_slow_twin(seed):
    serve(seed, acts=12)


def test_random_fleets_use_parts_and_the_whole_fleet():
    counts = sum((serve(seed, acts=12) for seed in range(20)), Counter())
    assert all(counts[is_within] > 20 for is_within in (True, False, None)), counts


@pytest.mark.parametrize("partition", ["auto", "off"])
def test_a_single_process_decides_as_without_parts(partition):
    base = settings_of()
    plain = roost_with(hosts(6), settings=base, store=MemoryStore())
    other = roost_with(
        hosts(6),
        settings=msgspec.structs.replace(base, scheduler=Scheduler(partition=partition)),
        store=MemoryStore(),
    )
    other._current.part = choose_part(5, frozenset({5} if partition == "auto" else {5, 6}))
    for count in (1, 1, 3, 9, 60):
        one, same = plain.decide(small_request(count=count)), other.decide(small_request(count=count))
        ignored = {"settings_id": 0, "search_s": 0.0, "rank_s": 0.0}
        assert msgspec.structs.replace(one, **ignored) == msgspec.structs.replace(same, **ignored)
        assert one.part is None
