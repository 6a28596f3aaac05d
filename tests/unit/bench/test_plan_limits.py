"""The checker of plans under faults finds doctored records."""

import pytest

from bench.plan_faults.checks import find_move_problems
from bench.plan_faults.instances import Built, find_group_problems
from bench.plan_faults.limits import Limits, Move, find_overlaps, find_peaks, find_problems
from bench.plan_faults.moves import Applied, read_moves

LIMITS = Limits(at_once=3, per_host=2, per_group=1)


def move(number, hosts="ab", *, begun_s=0.0, ended_s=9.0, group=""):
    return Move(
        operation=f"o{number}",
        instance=f"i{number}",
        hosts=frozenset(hosts),
        group=group,
        begun_s=begun_s,
        ended_s=ended_s,
    )


def problems_of(moves, samples=()):
    seen, recorded = find_peaks(LIMITS, moves, [frozenset(each.split()) for each in samples])
    return find_problems("plan", LIMITS, seen), find_problems("plan", LIMITS, recorded)


def test_moves_within_their_limits_have_no_problem():
    moves = [move(1, "ab", group="g"), move(2, "bc"), move(3, "cd", begun_s=1.0), move(4, begun_s=9.0, group="g")]
    assert problems_of(moves, ["o1 o2", "o1 o2 o3", "o1 o2 o3", "o4", "o4"]) == ([], [])


@pytest.mark.parametrize(
    ("moves", "problem"),
    [
        ([move(1, "ab"), move(2, "cd"), move(3, "ef"), move(4, "gh")], "4 moves at once in all, the limit is 3"),
        ([move(1, "ab"), move(2, "cb"), move(3, "bd")], "3 moves at once in host b, the limit is 2"),
        ([move(1, "ab", group="g"), move(2, "cd", group="g")], "2 moves at once in group g, the limit is 1"),
    ],
    ids=["all", "host", "group"],
)
def test_an_ignored_limit_is_found_in_the_samples_and_in_the_record(moves, problem):
    every = " ".join(each.operation for each in moves)
    assert problems_of(moves, [every, every]) == ([f"plan: {problem}"], [f"plan: {problem}"])


def test_an_open_move_counts_until_the_end_of_the_record():
    moves = [move(1, ended_s=None, group="g"), move(2, begun_s=100.0, ended_s=101.0, group="g")]
    assert problems_of(moves)[1] == ["plan: 2 moves at once in group g, the limit is 1"]


def test_a_sample_of_operations_that_were_not_open_together_is_no_proof():
    """The list is read in several queries, so it may have an ended operation and its successor."""
    moves = [move(1, group="g", ended_s=5.0), move(2, group="g", begun_s=5.1)]
    assert problems_of(moves, ["o1", "o1 o2", "o2"]) == ([], [])
    assert [*find_overlaps([frozenset("a"), frozenset("ab"), frozenset("b")])] == [frozenset("a"), frozenset("b")]


def test_moves_of_a_plan_have_requested_hosts_and_their_own_group():
    applied = Applied(name="plan", operation="p", limits=LIMITS, routes={"i1": ("a", "b"), "i2": ("c", "")})
    rows = [
        {"uuid": "o1", "parent": "p", "instance": "i1", "created_at_s": 1.0, "changed_at_s": 3.0, "outcome": "done"},
        {"uuid": "o2", "parent": "p", "instance": "i2", "created_at_s": 2.0, "changed_at_s": 2.5, "outcome": "open"},
        {"uuid": "o3", "parent": None, "instance": "i3", "created_at_s": 0.0, "changed_at_s": 1.0, "outcome": "done"},
    ]
    first, second = read_moves(rows, applied, {"i1": "g"})
    assert first == move(1, "ab", begun_s=1.0, ended_s=3.0, group="g")
    assert second == move(2, "c", begun_s=2.0, ended_s=None)
    assert (first.duration_s, second.duration_s) == (2.0, 0.0)


def check(*, state="done", problem="", outcomes=("done",), host="b", outcome=None, instance="i1", others_at_s=()):
    """Return the problems of a plan with one move of i1 from host a to host b; the record lists other moves later."""
    applied = Applied(name="plan", operation="p", limits=LIMITS, routes={"i1": ("a", "b")})
    moves = [{"number": 1, "instance": instance, "target": "b", "state": state, "problem": problem}]
    shown = {"outcome": outcome or ("done" if state == "done" else "failed"), "plan": {"moves": moves}}
    rows = [
        {
            "uuid": f"o{at}",
            "parent": "p",
            "instance": instance,
            "kind": "live_migrate",
            "outcome": each,
            "changed_at_s": 2.0,
        }
        for at, each in enumerate(outcomes)
    ]
    rows += [
        {
            "uuid": "later",
            "parent": "q",
            "instance": instance,
            "kind": "migrate",
            "outcome": "done",
            "changed_at_s": each,
        }
        for each in others_at_s
    ]
    return find_move_problems(applied, shown, operations=rows, instances={instance: {"host": host}})


@pytest.mark.parametrize(
    "fine",
    [
        {},
        {"others_at_s": (1.0,)},
        {"others_at_s": (3.0,), "host": "c"},
        {"outcomes": ()},  # The instance was on its target already.
        {"state": "failed", "problem": "full", "outcomes": ("failed",), "host": "a"},
        {"state": "failed", "problem": "gone", "outcomes": (), "host": "a"},
        {"state": "skipped", "problem": "it needs move 2", "outcomes": (), "host": "a"},
    ],
)
def test_moves_with_an_outcome_or_a_reason_have_no_problem(fine):
    assert check(**fine) == []


@pytest.mark.parametrize(
    ("doctored", "text"),
    [
        ({"state": "moving", "outcomes": ("open",)}, "operations are ['open']"),
        ({"state": "waiting", "outcomes": ()}, "is waiting"),
        ({"outcomes": ("done", "done")}, "operations are ['done', 'done']"),
        ({"state": "skipped", "problem": "late", "outcomes": ("done",)}, "operations are ['done']"),
        ({"state": "failed", "outcomes": ("failed",), "host": "a"}, "its reason is ''"),
        ({"host": "a", "others_at_s": (1.0,)}, "it is on 'a', not on 'b'"),
        ({"outcome": "open"}, "ended as open"),
        ({"instance": "i2"}, "other moves than requested: ['i1', 'i2']"),
    ],
)
def test_a_doctored_move_is_found(doctored, text):
    assert any(text in each for each in check(**doctored)), check(**doctored)


def test_members_of_groups_on_forbidden_hosts_are_found():
    groups = {"i1": "apart", "i2": "apart", "i3": "together", "i4": "together", "i5": "soft", "i6": "soft"}
    policies = {"apart": "anti-affinity", "together": "affinity", "soft": "soft-anti-affinity"}
    built = Built({}, groups, policies)
    fine = {"i1": "a", "i2": "b", "i3": "a", "i4": "a", "i5": "c", "i6": "c"}
    assert find_group_problems(built, {each: {"host": host} for each, host in fine.items()}) == []
    wrong = fine | {"i2": "a", "i4": "b"}
    found = find_group_problems(built, {each: {"host": host} for each, host in wrong.items()})
    assert [each.split()[1] for each in found] == ["apart", "together"]
