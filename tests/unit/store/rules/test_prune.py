"""Rows left after pruning can be rebuilt, for any clock and any read limit."""

import math

from hypothesis import given
from hypothesis import strategies as st

from roost.store.rules.prune import Row, Snapshot, choose_deletions

SIZE = 10


@st.composite
def histories(draw):
    """Draw changes 1..n with mostly rising times, and complete or incomplete snapshots of some."""
    count = draw(st.integers(0, 12))
    times = sorted(draw(st.lists(st.integers(0, 30), min_size=count, max_size=count)))
    feed = [Row("feed", number, float(at_s), SIZE, number) for number, at_s in enumerate(times, start=1)]
    decisions = [Row("decision", row.number, row.written_at_s, SIZE) for row in feed if draw(st.booleans())]
    snapshots = [
        Snapshot(mark, mark, float(draw(st.integers(0, 30))), SIZE, draw(st.booleans()))
        for mark in sorted(draw(st.sets(st.integers(0, count), max_size=4)))
    ]
    return feed, decisions, snapshots


def prune(feed, decisions, snapshots, *, older_than_s, max_bytes, limit, rounds=1):
    for _ in range(rounds):
        total_bytes = SIZE * (len(feed) + len(decisions) + len(snapshots))
        oldest = [*decisions[:limit], *feed[:-1][:limit]]
        deletions = choose_deletions(
            oldest, snapshots, total_bytes, older_than_s=older_than_s, max_bytes=max_bytes, limit=limit
        )
        assert deletions.left_bytes == total_bytes - SIZE * sum(map(len, deletions[:3]))
        feed = [row for row in feed if (row.number,) not in deletions.changes]
        decisions = [row for row in decisions if (row.number,) not in deletions.decisions]
        snapshots = [each for each in snapshots if (each.position,) not in deletions.snapshots]
    return feed, decisions, snapshots


@given(histories(), st.integers(0, 31), st.integers(0, 300), st.integers(1, 20), st.integers(1, 6))
def test_remaining_complete_snapshots_have_all_later_changes(history, older, max_bytes, limit, rounds):
    feed, decisions, snapshots = history
    count = len(feed)
    feed, decisions, snapshots = prune(
        feed, decisions, snapshots, older_than_s=older, max_bytes=max_bytes, limit=limit, rounds=rounds
    )
    left = {row.number for row in feed}
    for each in snapshots:
        if each.is_complete:
            assert set(range(each.mark + 1, count + 1)) <= left
    assert not count or count in left


@given(histories(), st.integers(0, 31), st.integers(1, 20) | st.just(100))
def test_pruning_by_age_keeps_the_snapshots_of_remaining_decisions(history, older, limit):
    feed, decisions, snapshots = history
    rising = [each._replace(made_at_s=float(at)) for at, each in zip((2, 9, 17, 25), snapshots, strict=False)]
    complete = [each for each in rising if each.is_complete]
    # A decision precedes the snapshot that holds the next change.
    decisions = [
        row
        for row in decisions
        if all(row.written_at_s <= head.made_at_s for head in complete if head.mark >= row.number)
    ]
    left = prune(feed, decisions, rising, older_than_s=older, max_bytes=10**9, limit=limit)
    assert left[1] == [row for at, row in enumerate(decisions) if row.written_at_s >= older or at >= limit]
    for row in left[1]:
        before = [each.mark for each in complete if each.mark < row.number]
        if before:
            assert max(before) in [each.mark for each in left[2]]


@given(histories(), st.integers(0, 300))
def test_pruning_by_size_meets_the_limit_unless_nothing_is_deletable(history, max_bytes):
    feed, decisions, snapshots = prune(*history, older_than_s=-1, max_bytes=max_bytes, limit=2, rounds=40)
    left = SIZE * (len(feed) + len(decisions) + len(snapshots))
    # The newest change is never pruned; incomplete snapshots are deleted elsewhere.
    stays = SIZE * (bool(feed) + sum(not each.is_complete for each in snapshots))
    assert left <= max(max_bytes, stays)


def test_decisions_are_pruned_before_the_snapshots_they_need():
    feed = [Row("feed", number, float(number), SIZE, number) for number in range(1, 7)]
    decisions = [Row("decision", number, float(number), SIZE) for number in range(1, 7)]
    snapshots = [Snapshot(mark, mark, mark + 0.5, SIZE, is_complete=True) for mark in (1, 3, 5)]
    deletions = choose_deletions([*decisions, *feed], snapshots, 150, older_than_s=-1.0, max_bytes=130, limit=100)
    assert (deletions.changes, deletions.decisions, deletions.snapshots) == ([(1,)], [(1,)], [])
    deletions = choose_deletions([*decisions, *feed], snapshots, 150, older_than_s=-1.0, max_bytes=90, limit=100)
    assert (deletions.changes, deletions.decisions, deletions.snapshots) == ([(1,), (2,)], [(1,), (2,), (3,)], [(1,)])
    deletions = choose_deletions([*decisions, *feed], snapshots, 150, older_than_s=math.inf, max_bytes=150, limit=100)
    assert (len(deletions.changes), len(deletions.decisions), deletions.snapshots) == (5, 6, [(1,), (3,)])


def test_old_snapshot_stays_until_all_decisions_that_need_it_were_read():
    feed = [Row("feed", number, float(number), SIZE, number) for number in range(1, 4)]
    decisions = [Row("decision", number, float(number), SIZE) for number in range(1, 4)]
    snapshots = [Snapshot(mark, mark, mark + 0.5, SIZE, is_complete=True) for mark in (0, 3)]
    kept = [len(prune(feed, decisions, snapshots, older_than_s=9, max_bytes=999, limit=1, rounds=n)[2]) for n in (2, 5)]
    assert kept == [2, 1]
