import numpy as np

from roost.engine.fill.row_writes import writes_of
from roost.engine.fill.table_columns import ClaimColumns, InventoryColumns, LabelColumns
from roost.model.writes import (
    Claim,
    ConsumerRow,
    InstanceRow,
    InventoryRow,
    Place,
    PutGeneration,
    PutInventories,
    PutMembership,
)


def stocks(*ids):
    ones = np.ones(len(ids), dtype=np.int64)
    return InventoryColumns(np.array(ids), 8 * ones, 0 * ones, ones, ones, ones, ones / 2, 5 * ones)


def test_inventories_of_a_provider_in_two_parts_are_one_write():
    first, second = stocks(1 << 16, 1 << 16 | 1), stocks(1 << 16 | 2, 2 << 16 | 1)
    row = (8, 0, 1, 1, 1, 0.5)
    assert list(writes_of([first, second])) == [
        PutInventories(1, 0, [InventoryRow(1, *row), InventoryRow(2, *row)]),
        PutInventories(2, 0, [InventoryRow(1, *row)]),
        PutGeneration(1, 5),
    ]


def test_labels_are_grouped_by_provider():
    part = LabelColumns("membership", np.array([1, 1, 3]), np.array([7, 8, 7]))
    assert list(writes_of([part])) == [PutMembership(1, 0, [7, 8]), PutMembership(3, 0, [7])]


def test_only_instances_with_a_place_take_one():
    consumers = ((1, 2), (b"a", b"b"), ("p", "p"), ("u", "u"), (0, 0), (1, 3))
    instances = ((1, 2), (5, 5), (7, 7), (0, 0), (9, 9), (0, 1), (4, 4))
    part = ClaimColumns(consumers, ((1,), (65537,), (3,)), instances, [True, False])
    rows = [InstanceRow(1, 5, 7, 0, 9, 0, 4), InstanceRow(2, 5, 7, 0, 9, 1, 4)]
    named = [ConsumerRow(1, b"a", "p", "u"), ConsumerRow(2, b"b", "p", "u", 0, 3)]
    assert list(writes_of([part])) == [Claim(named, [(1, 65537, 3)], rows, [Place(9, 0, 4, 1, 0)])]
