"""The rows of the history: one for the amounts of each minute, and one for the decisions of each process."""

import pytest

from roost.app.monitoring.history_writer import HistoryWriter, amounts_of
from roost.errors import Unavailable
from roost.model.evidence.fleet_history import ClassAmounts, DecisionCounts, decode_amounts, decode_counts
from roost.model.settings.roost_settings import Store
from roost.observe import fleet_metrics as families
from roost.observe.survey_board import sample
from roost.scheduler.decision_counts import DecisionTotals
from roost.store.rules.history_table import MemoryHistory

SURVEY = [
    sample(families.HOSTS, "up", "east", value=3),
    sample(families.CAPACITY, "VCPU", "east", value=64),
    sample(families.USED, "VCPU", "east", value=10),
    sample(families.STRANDED, "VCPU", "east", "other_class", value=5),
    sample(families.STRANDED, "VCPU", "east", "host", value=7),
]


class Process:
    """A process that decides, surveys and writes."""

    def __init__(self, table, name, **limits):
        self.totals, self.limits = DecisionTotals(), Store(**limits)
        self.writer = HistoryWriter(table, process=name, limits=lambda: self.limits, totals=self.totals.read)


@pytest.fixture
def table():
    return MemoryHistory()


def test_row_is_written_when_its_minute_is_over(table):
    process = Process(table, "a")
    process.writer.write(now_s=6000.0)
    process.writer.keep(SURVEY)
    process.totals.count_granted()
    process.totals.count_refused("search", "amount")
    process.writer.write(now_s=6059.9)
    assert table.list_keys() == []
    process.writer.write(now_s=6060.0)
    amounts, counts = table.read(0, 10**9)
    assert (amounts.minute, counts.minute, counts.part) == (100, 100, "a")
    assert decode_amounts(amounts.amounts) == [ClassAmounts("VCPU", "east", 64, 10, 5, 7)]
    assert decode_counts(counts.counts) == DecisionCounts(1, 0, {"search/amount": 1})


def test_several_processes_write_the_amounts_once_and_all_decisions(table):
    processes = [Process(table, name) for name in ("a", "b")]
    for process in processes:
        process.writer.write(now_s=6000.0)
        process.writer.keep(SURVEY)
        process.totals.count_granted()
    for process in processes:
        process.writer.write(now_s=6061.0)
    assert [(key.minute, key.part) for key in table.list_keys()] == [(100, ""), (100, "a"), (100, "b")]


def test_each_decision_is_counted_in_one_row(table):
    process = Process(table, "a")
    for minute in range(5):
        process.writer.write(now_s=60.0 * minute)
        for _ in range(minute):
            process.totals.count_granted()
    process.writer.write(now_s=299.0, is_end=True)
    assert [decode_counts(row.counts).granted for row in table.read(0, 10)] == [1, 2, 3, 4]


def test_decisions_of_a_failed_write_are_in_the_next_row(table):
    process = Process(table, "a")
    insert = table.insert

    def fail(_row):
        raise Unavailable("the database is gone")

    process.writer.write(now_s=0.0)
    process.totals.count_failed()
    table.insert = fail
    with pytest.raises(Unavailable):
        process.writer.write(now_s=60.0)
    table.insert = insert
    process.totals.count_failed()
    process.writer.write(now_s=120.0)
    (row,) = table.read(0, 10)
    assert (row.minute, decode_counts(row.counts).failed) == (1, 2)


def test_idle_minute_without_a_survey_has_no_row(table):
    process = Process(table, "a")
    for minute in range(5):
        process.writer.write(now_s=60.0 * minute)
    assert table.list_keys() == []


def test_no_row_is_written_if_the_settings_keep_none(table):
    process = Process(table, "a", history_days=0)
    process.writer.write(now_s=0.0)
    process.writer.keep(SURVEY)
    process.totals.count_granted()
    process.writer.write(now_s=60.0)
    assert table.list_keys() == []


def test_old_rows_are_deleted_while_it_writes(table):
    process = Process(table, "a", history_days=1)
    for minute in (0, 1, 3000, 3010):
        process.writer.keep(SURVEY)
        process.writer.write(now_s=60.0 * minute)
    assert [key.minute for key in table.list_keys()] == [3000]


def test_survey_without_classes_has_no_amounts():
    assert amounts_of(SURVEY[:1]) == []


def test_decisions_without_a_history_are_in_no_later_row(table):
    process = Process(table, "a", history_days=0)
    process.writer.write(now_s=0.0)
    process.totals.count_granted()
    process.writer.write(now_s=60.0)
    process.limits = Store()
    process.totals.count_failed()
    process.writer.write(now_s=120.0)
    (row,) = table.read(0, 10)
    assert decode_counts(row.counts) == DecisionCounts(0, 1, {})
