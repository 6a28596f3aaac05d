import random

from roost.placement.current import Current
from roost.placement.group_limit import GroupLimit
from roost.ports import CommitResult
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import hosts, roost_on, settings_of, small_request


class TimedStore(MemoryStore):
    """A store whose commits last as long as a test says."""

    waited_s = None
    elapsed_s = 0.0

    def __init__(self):
        super().__init__()
        self.sizes = []

    def commit(self, items):
        """Commit, and report the scripted times."""
        self.sizes.append(sum(bool(each.evidence) for each in items))
        committed = super().commit(items)
        return CommitResult(committed.refusals, committed.position, self.waited_s, self.elapsed_s)


def sizes_of(limit, shares, *, maximum=64):
    """Return the bound after each commit, by the share of its waits."""
    sizes = []
    for share in shares:
        limit.note(waited_s=share, elapsed_s=1.0)
        sizes.append(limit.size(maximum))
    return sizes


def test_long_waits_halve_the_bound_and_others_double_it():
    limit = GroupLimit()
    assert limit.size(64) == 64
    assert sizes_of(limit, [0.5, 0.34, 0.33, 0.9, 0.0, 0.0, 0.0]) == [32, 16, 32, 16, 32, 64, 64]


def test_the_bound_reaches_one_and_returns_without_delay():
    limit = GroupLimit()
    assert sizes_of(limit, [0.9] * 9) == [32, 16, 8, 4, 2, 1, 1, 1, 1]
    assert sizes_of(limit, [0.0] * 7) == [2, 4, 8, 16, 32, 64, 64]


def test_commits_of_unknown_waits_change_nothing():
    limit = GroupLimit()
    assert sizes_of(limit, [0.9, None, None]) == [32, 32, 32]


def test_the_bound_stays_between_one_and_any_maximum():
    limit, draw = GroupLimit(), random.Random(1)
    for _ in range(500):
        limit.note(waited_s=draw.choice((0.0, 0.5, None)), elapsed_s=1.0)
        maximum = draw.choice((1, 2, 3, 64, 100))
        assert 1 <= limit.size(maximum) <= maximum


def test_decisions_commit_in_groups_of_the_present_bound():
    store = TimedStore()
    roost = roost_on(store, settings=settings_of(group_max=8))
    roost.install(hosts(4, VCPU=1000, MEMORY_MB=1000))
    roost.decide(small_request())  # stores the documents of all requests
    store.waited_s, store.elapsed_s, store.sizes = 4.0, 10.0, []
    roost.work([small_request() for _ in range(16)])
    store.waited_s = 1.0
    roost.work([small_request() for _ in range(16)])
    assert store.sizes == [8, 4, 2, 1, 1, 1, 2, 4, 8, 1]


def test_commits_of_plans_count_too():
    store = TimedStore()
    current = Current(store)
    store.waited_s, store.elapsed_s = 4.0, 10.0
    current.commit([])
    assert current.group_limit.size(64) == 32
