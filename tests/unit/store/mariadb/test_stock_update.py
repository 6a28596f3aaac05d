import pytest

from roost.model.writes import CLASS_BITS
from roost.store.mariadb.stock_update import stock_updates
from roost.store.rules.batch import NO_MINIMUM, NO_PEAK

GENERATION = 3 << CLASS_BITS
CPU, MEMORY = GENERATION | 1, GENERATION | 2


def statement(stocks):
    ((update),) = stock_updates(stocks)
    return update.statements[1]


@pytest.mark.parametrize(
    ("number", "amounts"),
    [
        (CPU, [2, 2, 2, 2, 2]),
        (CPU, [-2, NO_PEAK, NO_MINIMUM, 0, 0]),
        (GENERATION, [1, NO_PEAK, NO_MINIMUM, 0, 0]),
        (GENERATION, [2, NO_PEAK, NO_MINIMUM, 0, 0]),
    ],
    ids=["claim", "release", "generation", "generation raised twice"],
)
def test_row_with_one_amount_needs_no_bounds(number, amounts):
    assert "@at" not in statement({number: amounts})


@pytest.mark.parametrize(
    ("number", "amounts"),
    [
        (CPU, [3, 3, 1, 2, 1]),
        (CPU, [-1, 1, 1, 1, 1]),
        (CPU, [0, 0, 0, 0, 0]),
        (CPU, [-1, -1, -1, -1, -1]),
        (CPU, [0, NO_PEAK, NO_MINIMUM, 0, 0]),
        (GENERATION, [5, 5, 5, 5, 5]),
    ],
    ids=["two claims", "claim and release", "zero", "negative claim", "empty release", "claim of a generation"],
)
def test_other_row_has_bounds(number, amounts):
    assert f"IF(id IN ({number})" in statement({number: amounts, MEMORY: [2, 2, 2, 2, 2]})


def test_amounts_are_in_the_order_of_their_ids():
    text = statement({MEMORY: [5, 5, 5, 5, 5], CPU: [2, 2, 2, 2, 2], GENERATION: [1, NO_PEAK, NO_MINIMUM, 0, 0]})
    assert f"ELT(INTERVAL(id, {GENERATION}, {CPU}, {MEMORY}), 1, 2, 5)" in text
    assert text.endswith(f"WHERE id IN ({GENERATION}, {CPU}, {MEMORY})")


def test_many_rows_are_updated_in_parts(monkeypatch):
    monkeypatch.setattr("roost.store.mariadb.stock_update._ROWS_MAX", 2)
    updates = list(stock_updates({number: [1, 1, 1, 1, 1] for number in (CPU, MEMORY, MEMORY + 1)}))
    assert [update.condition for update in updates] == [
        "ROW_COUNT() = 2 AND @passed = 2",
        "ROW_COUNT() = 1 AND @passed = 1",
    ]
    assert list(stock_updates({})) == []
