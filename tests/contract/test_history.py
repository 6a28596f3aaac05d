"""The history of the fleet in each kind of database, beside its servers."""

import threading

import pytest

from roost.errors import Unavailable
from roost.model.evidence.fleet_history import ClassAmounts, DecisionCounts, HistoryRow, encode_amounts, encode_counts
from roost.store.backup import backup, restore
from roost.store.upkeep.stored_history import SqlHistory, find_history, shorten_history

DAY = 24 * 60
NOW = 30_000_000
AMOUNTS = encode_amounts([ClassAmounts("VCPU", "east", 100, 50, 0, 0)])


def row(minute, part="", *, granted=0, amounts=AMOUNTS):
    counts = encode_counts(DecisionCounts(granted, 0, {}))
    return HistoryRow(minute, part, b"" if part else amounts, counts)


@pytest.fixture
def table(world):
    """The history of a database that a server uses."""
    found = find_history(getattr(world, "url", None), world.open())
    assert found is not None
    return found


def minutes(table):
    return [key.minute for key in table.list_keys()]


def test_first_of_several_processes_writes_a_row(table):
    first, second = row(NOW), row(NOW, amounts=encode_amounts([ClassAmounts("VCPU", "east", 1, 1, 0, 0)]))
    assert [table.insert(first), table.insert(second), table.insert(row(NOW, "a", granted=1))] == [True, False, True]
    assert table.read(NOW, NOW) == [first, row(NOW, "a", granted=1)]
    assert table.read(NOW + 1, NOW + 5) == []
    assert [(key.minute, key.part, key.size) for key in table.list_keys()] == [
        (NOW, "", first.size),
        (NOW, "a", row(NOW, "a", granted=1).size),
    ]


def test_old_rows_become_longer_periods_and_keep_their_counts(table):
    begin = NOW - 2 * DAY
    for minute in range(begin, begin + 20):
        table.insert(row(minute))
        table.insert(row(minute, "a", granted=1))
    table.insert(row(NOW - 5))
    shorten_history(table, now=NOW, days=30, max_bytes=10**9)
    assert table.read(0, NOW) == [row(begin, granted=10), row(begin + 10, granted=10), row(NOW - 5)]
    table.insert(row(begin + 3, "late", granted=7))
    shorten_history(table, now=NOW, days=30, max_bytes=10**9)
    assert table.read(begin, begin) == [row(begin, granted=17)]


def test_rows_beyond_the_days_are_deleted(table):
    for age in (31 * DAY, 30 * DAY + 60, 29 * DAY, 0):
        table.insert(row(NOW - age))
    shorten_history(table, now=NOW, days=30, max_bytes=10**9)
    assert minutes(table) == [NOW - 29 * DAY, NOW]


def test_oldest_rows_are_deleted_beyond_the_bytes(table):
    for age in range(10):
        table.insert(row(NOW - age))
    shorten_history(table, now=NOW, days=30, max_bytes=3 * row(NOW).size + 1)
    assert minutes(table) == [NOW - 2, NOW - 1, NOW]


def test_two_processes_merge_a_period_once(durable):
    durable.open()
    begin = NOW - 2 * DAY
    tables = [SqlHistory(durable.url) for _ in range(2)]
    for minute in range(begin, begin + 100):
        tables[0].insert(row(minute, "a", granted=1))
    threads = [
        threading.Thread(target=shorten_history, args=(table,), kwargs={"now": NOW, "days": 30, "max_bytes": 10**9})
        for table in tables
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [HistoryRow(begin + 10 * at, "", b"", encode_counts(DecisionCounts(10, 0, {}))) for at in range(10)]
    assert tables[0].read(0, NOW) == expected


def test_failed_merge_leaves_the_rows(table):
    table.insert(row(NOW))

    def fail(_rows):
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        table.replace(NOW, NOW, fail)
    assert minutes(table) == [NOW]


def test_backup_has_the_history(durable, tmp_path):
    durable.open()
    SqlHistory(durable.url).insert(row(NOW))
    backup(durable.url, tmp_path / "file", progress=lambda *_: None)
    target = str(tmp_path / "other.db")
    restore(target, tmp_path / "file", may_replace=False, progress=lambda *_: None)
    assert SqlHistory(target).read(0, NOW) == [row(NOW)]


def test_history_of_an_absent_database_is_an_outage(tmp_path):
    with pytest.raises(Unavailable):
        SqlHistory(str(tmp_path / "absent.db")).insert(row(NOW))
