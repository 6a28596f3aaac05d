"""Under random failures every instance ends ACTIVE with exactly one claim, or in ERROR with none."""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.errors import BuildAborted, BuildFailed
from roost.model.fleet import Departure
from roost.model.host import HostFacts
from roost.store.memory_store import MemoryStore
from tests.support.conductors.builders import ScriptedBuilder, allocations_of, conductor, failed_builds
from tests.support.fleets.worlds import (
    group,
    host,
    merge_fleets,
    roost_on,
    roost_with,
    settings_of,
    small_request,
    uuid_named,
)

HOSTS = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["", "east", "west"])), min_size=1, max_size=6)
REQUESTS = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(1, 3),
            "in_group": st.sampled_from([None, None, "apart"]),
            "force_hosts": st.sampled_from([(), (), (), ("h0",), ("h0", "h1")]),
        }
    ),
    min_size=1,
    max_size=4,
)


class RandomBuilder(ScriptedBuilder):
    """Builds or fails at random. During a build, a rival may claim resources or delete the instance."""

    def __init__(self, seed: int, rival) -> None:
        super().__init__()
        self._chance = random.Random(seed)
        self._rival = rival
        self.deleted: set[str] = set()
        self.counts: Counter[str] = Counter()  # failures in a row, by host

    def build(self, instance, *, host, node, limits):
        """See ``roost.ports.Builder``."""
        chance = self._chance.random()
        if chance < 0.3:
            self._rival.decide(small_request())
        elif chance < 0.35:
            self._rival.work([Departure(instance_uuids=(instance.uuid,))])
            self.deleted.add(instance.uuid)
        errors = [None, None, None, BuildFailed("no"), BuildFailed("no"), BuildAborted("never"), KeyError("odd")]
        self._script[host] = [error for error in [self._chance.choice(errors)] if error is not None]
        self.counts[host] = self.counts[host] + 1 if self._script[host] else 0
        super().build(instance, host=host, node=node, limits=limits)


@settings(max_examples=60)
@given(HOSTS, REQUESTS, st.integers(1, 4), st.integers(0, 2**32))
def test_every_instance_ends_active_with_one_claim_or_in_error_with_none(host_specs, requests, attempts, seed):
    store = MemoryStore()
    fleet = merge_fleets(
        *(
            host(f"h{number}", VCPU=vcpus, MEMORY_MB=99, facts=HostFacts(cell=cell))
            for number, (vcpus, cell) in enumerate(host_specs)
        ),
        group("apart", "anti-affinity"),
    )
    roost = roost_with(fleet, store=store, settings=settings_of(max_attempts=attempts))
    rival = roost_on(store.peer(), seed=99)
    builder = RandomBuilder(seed, rival)
    conductors = conductor(roost, builder, cells=["", "east"])
    outcomes = [each for request in requests for each in conductors.build(small_request(**request))]
    state = roost_on(store.peer(), seed=98).state
    for outcome in outcomes:
        check(outcome, state, builder, attempts=attempts)
    assert len(outcomes) == sum(request["count"] for request in requests)
    assert {name: count for name, count in failed_builds(state).items() if count} == +builder.counts
    assert max(Counter(members(state)).values(), default=0) <= 1
    active = sum(outcome.status == "ACTIVE" for outcome in outcomes)
    vcpus = state.classes[state.class_ids.id_of("VCPU")]
    assert vcpus.used.view.sum() == active + foreign_consumers(state, outcomes) == len(state.holders)


def check(outcome, state, builder, *, attempts):
    """Check one outcome against the claims and the builder."""
    holds, story = allocations_of(state, outcome.instance_uuid), outcome.attempts
    tried = [name for uuid, name in builder.tried if uuid == outcome.instance_uuid]
    assert [each.host for each in story if each.claim == "claimed"] == tried
    assert len(tried) <= attempts
    assert outcome.unreleased == ""
    if outcome.status == "ACTIVE":
        assert holds is not None
        assert holds[0] == outcome.node == builder.running[outcome.instance_uuid]
        assert len(holds[1]) == 2  # one VCPU and one MiB
        assert [each.problem == "" for each in story] == [False] * (len(story) - 1) + [True]
        assert outcome.fault == ""
    else:
        assert holds is None
        assert outcome.fault
        assert outcome.instance_uuid in builder.deleted or all(each.problem for each in story)


def foreign_consumers(state, outcomes):
    """Count the consumers that no outcome names."""
    ours = {outcome.instance_uuid.replace("-", "") for outcome in outcomes}
    return sum(uuid.hex() not in ours for uuid in state.holders)


def members(state):
    """Return the host row of each member of the anti-affinity group."""
    server_group = state.groups_by_uuid[uuid_named("apart")]
    return [row for row, count in server_group.members.items() for _ in range(count)]
