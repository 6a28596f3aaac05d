from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns import label_bits as engine_labels
from roost.engine.columns.change_log import Changes
from roost.engine.columns.column import Column, RowSet
from roost.engine.columns.inventory_columns import ClassColumns, fits
from roost.engine.columns.label_bits import Labels
from roost.engine.columns.types import NO_INVENTORY
from tests.reference.candidates import Stock
from tests.support.fleets.forests import inventory_row


def test_view_grows_with_the_column_and_is_read_only():
    column = Column(np.int64, fill=-1)
    for rows in (1, 17, 40):
        column.grow(rows)
        column.data[rows - 1] = rows
    assert len(column) == 40
    assert [column.view[at] for at in (0, 1, 16, 17, 39)] == [1, -1, 17, -1, 40]
    with pytest.raises(ValueError, match="read-only"):
        column.view[0] = 2


def test_a_view_follows_writes_and_a_fork_does_not():
    column = Column(np.int64, rows=2)
    fork = column.fork()
    column.data[0] = 5
    assert column.view.tolist() == [5, 0]
    assert fork.view.tolist() == [0, 0]


stocks = st.builds(
    Stock,
    total=st.integers(1, 12),
    reserved=st.integers(0, 1),
    min_unit=st.integers(1, 3),
    max_unit=st.integers(1, 12),
    step_size=st.integers(1, 3),
    ratio=st.sampled_from((0.0, 0.5, 1.0, 1.5, 16.0)),
    used=st.integers(0, 12),
)


def _take(columns, row, amount):
    columns.used.each[row] += amount
    columns.free.each[row] -= amount


@given(st.lists(st.none() | stocks, min_size=1, max_size=4), st.integers(1, 12))
def test_fit_mask_and_can_take_equal_the_plain_rule(inventories, amount):
    columns = ClassColumns(0)
    columns.grow(len(inventories))
    for row, stock in enumerate(inventories):
        if stock is not None:
            columns.put(row, inventory_row("VCPU", stock))
            _take(columns, row, stock.used)
    expected = [stock is not None and stock.serves(amount) for stock in inventories]
    assert columns.fit_mask(amount).tolist() == expected
    assert [columns.can_take(row, amount) for row in range(len(inventories))] == expected
    assert columns.fork().fit_mask(amount).tolist() == expected


@given(st.lists(stocks, min_size=1, max_size=4), st.integers(1, 12))
def test_fits_equals_the_plain_rule_without_unit_bounds(inventories, amount):
    plain = [Stock(total=each.total, reserved=each.reserved, ratio=each.ratio, used=each.used) for each in inventories]
    verdict = fits(
        total=np.array([each.total for each in plain]),
        reserved=np.array([each.reserved for each in plain]),
        ratio=np.array([each.ratio for each in plain]),
        used=np.array([each.used for each in plain]),
        amount=amount,
    )
    assert verdict.tolist() == [each.serves(amount) for each in plain]


def test_unit_mask_follows_a_changed_inventory():
    columns = ClassColumns(1)
    columns.put(0, inventory_row("VCPU", Stock(8, step_size=2)))
    assert [columns.unit_mask(amount).tolist() for amount in (2, 3)] == [[True], [False]]
    columns.put(0, inventory_row("VCPU", Stock(8, step_size=3)))
    assert [columns.unit_mask(amount).tolist() for amount in (2, 3)] == [[False], [True]]


def test_restored_inventory_keeps_its_usage():
    columns = ClassColumns(1)
    columns.put(0, inventory_row("VCPU", Stock(8)))
    _take(columns, 0, 3)
    columns.drop(0)
    assert columns.free.view[0] == NO_INVENTORY
    assert not columns.fit_mask(1)[0]
    columns.put(0, inventory_row("VCPU", Stock(10)))
    assert columns.free.view[0] == 7


@given(
    st.lists(st.tuples(st.integers(0, 3), st.frozensets(st.integers(0, 3))), max_size=12),
    st.sampled_from([1, 2, 3, 32]),
)
def test_labels_of_rows_are_correct_with_and_without_columns(writes, column_min):
    with patch.object(engine_labels, "COLUMN_MIN", column_min):
        _check_labels(writes)


def _check_labels(writes):
    labels = Labels()
    labels.grow(4)
    expected = dict.fromkeys(range(4), frozenset())
    for row, new in writes:
        before = labels.version
        assert labels.put(row, new) == (expected[row] != new) == (labels.version != before)
        expected[row] = new
    fork = labels.fork()
    labels.put(0, expected[0] ^ {1})
    for label in range(4):
        assert fork.mask_of(label).tolist() == [label in expected[row] for row in range(4)]
    assert fork.mask_of_any({0, 2}).tolist() == [bool(expected[row] & {0, 2}) for row in range(4)]
    assert fork.find_used() == frozenset().union(*expected.values())
    fork.grow(6)
    assert fork.mask_of(1).tolist() == [1 in expected.get(row, ()) for row in range(6)]


def test_rare_labels_need_no_memory_per_provider():
    """As columns, these labels would need a hundred gigabytes."""
    labels = Labels()
    labels.grow(1_000_000)
    labels.put(7, range(100_000))
    assert np.flatnonzero(labels.mask_of(99_999)).tolist() == [7]


def test_changes_since_a_position_are_none_once_the_log_is_truncated():
    changes = Changes()
    position = changes.hosts.position
    for row in (3, 1, 3):
        changes.hosts.add(row)
    changes.providers.add(5)
    assert changes.hosts.since(position) == [3, 1, 3]
    fork = changes.fork()
    for _ in range(10_000):
        changes.hosts.add(0)
    assert changes.hosts.since(position) is None
    assert changes.hosts.since(changes.hosts.position) == []
    assert changes.hosts.position == 10_003
    assert fork.hosts.since(position) == [3, 1, 3]
    assert changes.providers.since(0) == fork.providers.since(0) == [5]
    epoch = changes.epoch
    changes.touch_all()
    assert (changes.epoch, fork.epoch) == (epoch + 1, epoch)


def test_row_set_equals_a_set():
    rows, plain = RowSet(2), set[int]()
    rows.grow(9)
    for row in (3, 3, 8, 0):
        rows.add(row)
        plain.add(row)
    copy = rows.fork()
    for row in (8, 5):
        rows.discard(row)
        plain.discard(row)
    assert (list(rows), len(rows), rows.rows.tolist()) == (sorted(plain), len(plain), sorted(plain))
    assert 3 in rows
    assert 8 not in rows
    rows.update(np.array([3, 4]))
    assert (list(rows), len(rows), list(copy)) == ([0, 3, 4], 3, [0, 3, 8])


def test_trimmed_column_keeps_its_rows_and_grows():
    column = Column(np.int64, fill=7)
    column.grow(100)
    column.each[99] = 1
    column.grow(101)
    column.trim()
    assert len(column.data) == 101
    column.grow(102)
    assert column.view[98:].tolist() == [7, 1, 7, 7]
