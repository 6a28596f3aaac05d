"""Longer periods for older rows of the history, and aligned arrays for readers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.engine.survey.history_rollup import choose_step, merge_rows, period_of, periods_to_merge, roll_up
from roost.model.evidence.fleet_history import (
    ClassAmounts,
    DecisionCounts,
    HistoryRow,
    decode_amounts,
    decode_counts,
    encode_amounts,
    encode_counts,
)

DAY = 24 * 60
NOW = 30_000_000


def amounts(minute, used, *, zone="east", resource_class="VCPU"):
    return HistoryRow(minute, "", encode_amounts([ClassAmounts(resource_class, zone, 100, used, 3, 4)]), b"")


def counts(minute, part, granted=0, **refused):
    refused = {name.replace("__", "/"): count for name, count in refused.items()}
    return HistoryRow(minute, part, b"", encode_counts(DecisionCounts(granted, 0, refused)))


@pytest.mark.parametrize(("age", "period"), [(0, 1), (DAY, 1), (DAY + 60, 10), (7 * DAY, 10), (7 * DAY + 60, 60)])
def test_older_rows_have_longer_periods(age, period):
    assert period_of(NOW - age, now=NOW) == period


def test_no_period_is_cut_by_a_change_of_its_length():
    for now in range(NOW, NOW + 60):
        for minute in range(NOW - DAY - 120, NOW - DAY + 120):
            first = minute // 10 * 10
            assert len({period_of(each, now=now) for each in range(first, first + 10)}) == 1


def test_only_unmerged_old_periods_are_merged():
    keys = [(NOW - 8 * DAY, ""), (NOW - 8 * DAY + 7, ""), (NOW - 2 * DAY, "a"), (NOW - 1, "a"), (NOW - 3 * DAY, "")]
    assert (NOW % 60, periods_to_merge(keys, now=NOW)) == (
        0,
        [(NOW - 8 * DAY, NOW - 8 * DAY + 59), (NOW - 2 * DAY, NOW - 2 * DAY + 9)],
    )


def test_merged_row_has_the_first_amounts_and_the_sum_of_decisions():
    rows = [counts(10, "a", 2, io_ops__rule=1), amounts(11, 40), counts(11, "b", 3, io_ops__rule=4), amounts(12, 90)]
    row = merge_rows(rows, minute=10)
    assert (row.minute, row.part) == (10, "")
    assert [each.used for each in decode_amounts(row.amounts)] == [40]
    assert decode_counts(row.counts) == DecisionCounts(5, 0, {"io_ops/rule": 5})


@pytest.mark.parametrize(
    ("minutes", "points", "step"),
    [(60, 60, 1), (60, 59, 2), (DAY, 240, 10), (2 * DAY, 1000, 10), (30 * DAY, 1000, 60), (30 * DAY, 5, 8 * DAY)],
)
def test_step_fits_the_points_and_the_rows(minutes, points, step):
    assert choose_step(since=NOW - minutes, until=NOW, points=points, now=NOW) == step


@given(st.integers(0, NOW - 1), st.integers(1, NOW), st.integers(1, 1000))
def test_periods_of_a_span_are_never_too_many(since, length, points):
    until = min(NOW, since + length)
    step = choose_step(since=since, until=until, points=points, now=NOW)
    assert -(-until // step) - since // step <= points
    assert step % period_of(since, now=NOW) == 0


def test_arrays_are_aligned_and_tell_missing_periods():
    rows = [
        amounts(120, 10),
        amounts(121, 11),
        counts(121, "a", 2, search__amount=1),
        counts(123, "b", 1, search__amount=2, io_ops__rule=9),
        amounts(124, 30, zone="west"),
    ]
    found = roll_up(rows, since=120, until=126, step=2, resource_class=None, zone=None)
    (vcpu,) = found.classes
    assert found.times == [7200, 7320, 7440]
    assert (vcpu.used, vcpu.capacity) == ([10, None, 30], [100, None, 100])
    assert (vcpu.stranded, vcpu.unusable) == ([3, None, 3], [4, None, 4])
    assert found.granted == [2, 1, 0]
    assert [(each.rule, each.reason, each.counts) for each in found.refused] == [
        ("io_ops", "rule", [0, 9, 0]),
        ("search", "amount", [1, 2, 0]),
    ]
    assert found.zones == ["east", "west"]


def test_amounts_are_sums_of_zones_or_of_one():
    cells = [ClassAmounts(name, zone, 10, 1, 0, 0) for name in ("DISK_GB", "VCPU") for zone in ("east", "west")]
    rows = [HistoryRow(5, "", encode_amounts(cells), b"")]

    def used(**limits):
        found = roll_up(rows, since=5, until=6, step=1, **{"resource_class": None, "zone": None, **limits})
        return {each.resource_class: each.used for each in found.classes}

    assert used() == {"DISK_GB": [2], "VCPU": [2]}
    assert used(zone="east") == {"DISK_GB": [1], "VCPU": [1]}
    assert used(resource_class="VCPU", zone="east") == {"VCPU": [1]}
    assert used(zone="north") == {}


def test_rare_reasons_are_counted_together():
    refused = {f"rule{number}/rule": 100 - number for number in range(20)}
    rows = [HistoryRow(5, "a", b"", encode_counts(DecisionCounts(0, 0, refused)))]
    found = roll_up(rows, since=5, until=6, step=1, resource_class=None, zone=None).refused
    assert [(each.rule, each.counts) for each in found[-2:]] == [("rule10", [90]), ("other", [sum(range(81, 90))])]
    assert sum(each.counts[0] for each in found) == sum(refused.values())
