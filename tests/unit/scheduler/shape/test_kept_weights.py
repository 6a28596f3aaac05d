"""Rankings of several shapes from pools with kept raw weights equal those of passes with new raw weights."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.evidence.lesson import Lesson
from roost.model.flavor import Flavor
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.plugin import HostsAlone, NoOptions, Rules, implements
from roost.scheduler.weighers.cpu import Cpu, CpuOptions
from roost.scheduler.weighers.ram import Ram, RamOptions
from tests.support.fleets.crowd_changes import STEPS, compare, random_crowd, small_pools
from tests.support.fleets.crowds import Kind, ShapeProbe, Tenancy, allocate_flavor, crowd

LESSON = "remainder"


class NewRemainder(BaseWeigher[NoOptions]):
    """Prefer hosts with a small remainder of memory after as many instances as fit; the lesson sets the step."""

    name = "remainder"
    aggregate_key = "remainder"
    multiplier = 1.0

    def __init__(self, multiplier=1.0, minval=None, maxval=None):
        super().__init__(NoOptions())
        self.multiplier, self.minval, self.maxval = multiplier, minval, maxval

    def raw(self, hosts, spec):
        """Return the remainder, negated: few different numbers, so ties are frequent."""
        step = max(spec.flavor.memory_mb, 1) * self.version(hosts)
        return -(np.maximum(hosts.column("free_ram_mb"), 0) % step) / step

    def version(self, hosts):
        """Return the version of the lesson."""
        lesson = hosts.lesson(LESSON)
        return 1 if lesson is None else lesson.version


class KeptRemainder(NewRemainder):
    """The same with kept raw weights."""

    name = "remainder"

    def weight_key(self, hosts, spec):
        """Return the memory of an instance, and the version of the lesson."""
        return spec.flavor.memory_mb, self.version(hosts)


def teach(state, version):
    """Store a version of the lesson, as the feed does."""
    state.lessons[LESSON] = Lesson(name=LESSON, version=version, requests=0, counted=[], body=b"")


def rules_of(weigher, others):
    return Rules(filters=(), weighers=(*others[:1], weigher, *others[1:]))


def random_remainders(random):
    """Return weighers with kept and with new raw weights, and further weighers."""
    options = (
        random.choice((1.0, 1.0, -1.5, 0.3)),
        random.choice((None, None, -0.5)),
        random.choice((None, None, -0.25)),
    )
    others = random.sample([Cpu(CpuOptions()), Ram(RamOptions(ram_weight_multiplier=-0.5))], random.randint(0, 2))
    return rules_of(KeptRemainder(*options), others), rules_of(NewRemainder(*options), others)


def follow(seed, *, hosts, rounds):
    """Compare three shapes with new ones after each of many random changes and lessons."""
    random = Random(seed)
    state = crowd(random_crowd(random, hosts))
    tenancy = Tenancy(state)
    kept, new = random_remainders(random)
    flavors = [Flavor(name="f", vcpus=random.choice((0, 1)), memory_mb=memory, root_gb=0) for memory in (1, 3, 5)]
    shapes = [ShapeProbe(state, flavor, kept, fresh_rules=new) for flavor in flavors]
    steps = random.sample(STEPS, random.randint(1, len(STEPS)))
    with small_pools(random):
        for _ in range(rounds):
            random.choice(steps)(random, tenancy, random.choice(shapes))
            if random.random() < 0.1:
                teach(state, random.choice((1, 2, 3)))
            if random.random() < 0.1:
                random.choice(shapes).shape.rank_all()  # Another reader may be the first with a new lesson.
            for shape in random.sample(shapes, random.randint(1, 3)):
                compare(shape, random.choice((1, 1, 5, 5, 40, 129)))
    return shapes


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.sampled_from([2, 3, 20, 130, 300]))
def test_pools_of_kept_weights_equal_passes_over_new_ones(seed, hosts):
    follow(seed, hosts=hosts, rounds=25)


@pytest.mark.soak
@settings(max_examples=2_000)
@given(st.integers(0, 2**32), st.sampled_from([2, 12, 97, 385, 1000]))
def test_pools_of_kept_weights_equal_passes_over_new_ones_in_long_runs(seed, hosts):
    follow(seed, hosts=hosts, rounds=100)


def equal_hosts_with_kept_weights(hosts):
    state = crowd([Kind(vcpus=64, memory_mb=250)] * hosts)
    kept, new = (Rules(filters=(), weighers=(weigher,)) for weigher in (KeptRemainder(), NewRemainder()))
    return Tenancy(state), ShapeProbe(state, Flavor(name="f", vcpus=1, memory_mb=4), kept, fresh_rules=new)


def test_a_pool_serves_most_rankings_of_kept_weights_among_many_ties():
    assert implements(KeptRemainder(), HostsAlone)
    assert not implements(NewRemainder(), HostsAlone)
    tenancy, shape = equal_hosts_with_kept_weights(2000)
    for number in range(300):
        compare(shape, 5)
        allocate_flavor(tenancy, shape.rank(1).rows[0], shape.flavor)
        tenancy.arrive(number % 7, MEMORY_MB=1 + number % 3)  # The ends of the scale move.
    assert shape.from_pool > 0.9 * shape.looks


def test_a_lesson_ends_the_pool():
    tenancy, shape = equal_hosts_with_kept_weights(600)
    for version in (1, 2, 3, 2):
        teach(tenancy.state, version)
        for row in range(3):
            tenancy.arrive(row, MEMORY_MB=1)
            compare(shape, 5)
