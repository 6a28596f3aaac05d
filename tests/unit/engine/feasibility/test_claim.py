import pytest

from roost.engine.feasibility.claim import check_claim
from roost.model.writes import InventoryRow
from tests.reference.candidates import Node, Stock
from tests.support.fleets.forests import state_of

VCPU, MEMORY_MB = 1, 2


def verdict(stock, *amounts, frees=()):
    state = state_of({"host": Node(stocks={"VCPU": stock})})
    refusal = check_claim(
        state, [(0, VCPU, amount) for amount in amounts], frees=[(0, VCPU, amount) for amount in frees]
    )
    return refusal and refusal.reason


@pytest.mark.parametrize(
    ("stock", "amounts", "reason"),
    [
        (Stock(8, used=4), (4,), None),
        (Stock(8, used=4), (5,), "capacity"),
        (Stock(8, used=4), (2, 2), None),
        (Stock(8, used=4), (2, 3), "capacity"),
        (Stock(8, reserved=2, ratio=1.5), (9,), None),
        (Stock(8, reserved=2, ratio=1.5), (10,), "capacity"),
        (Stock(8, max_unit=3), (2, 2), None),
        (Stock(8, max_unit=3), (4,), "units"),
        (Stock(8, min_unit=2), (1,), "units"),
        (Stock(8, step_size=2), (3,), "units"),
        (Stock(8, min_unit=2, step_size=2), (2, 4), None),
    ],
)
def test_amounts_obey_unit_bounds_and_their_sum_obeys_capacity(stock, amounts, reason):
    assert verdict(stock, *amounts) == reason


def test_freed_amounts_count_and_overuse_may_shrink_but_not_grow():
    assert verdict(Stock(8, used=8), 6, frees=(6,)) is None
    assert verdict(Stock(8, used=8), 7, frees=(6,)) == "capacity"
    assert verdict(Stock(8, used=12), 5, frees=(6,)) is None
    assert verdict(Stock(8, used=12), 6, frees=(6,)) is None
    assert verdict(Stock(8, used=12), 7, frees=(6,)) == "capacity"


def test_refusal_names_provider_class_and_amount():
    state = state_of({"host": Node(stocks={"VCPU": Stock(8)}), "other": Node(stocks={"MEMORY_MB": Stock(8)})})
    refusal = check_claim(state, [(0, VCPU, 1), (0, VCPU, 100), (0, MEMORY_MB, 2)])
    assert refusal is not None
    assert (refusal.reason, refusal.row, refusal.class_id, refusal.amount) == ("capacity", 0, VCPU, 100)
    refusal = check_claim(state, [(0, VCPU, 1), (0, MEMORY_MB, 2)])
    assert refusal is not None
    assert (refusal.reason, refusal.row, refusal.class_id, refusal.amount) == ("missing", 0, MEMORY_MB, 2)


def test_other_inventories_can_replace_those_in_the_columns():
    state = state_of({"host": Node(stocks={"VCPU": Stock(8, used=4)})})
    smaller = {
        (0, VCPU): InventoryRow(VCPU, 5, 0, 1, 8, 1, 1.0),
        (0, MEMORY_MB): InventoryRow(MEMORY_MB, 4, 0, 2, 8, 1, 1.0),
    }
    assert check_claim(state, [(0, VCPU, 2)]) is None
    refusals = [check_claim(state, [take], overrides=smaller) for take in ((0, VCPU, 2), (0, MEMORY_MB, 1))]
    assert [each and each.reason for each in refusals] == ["capacity", "units"]
    assert check_claim(state, [(0, VCPU, 1), (0, MEMORY_MB, 4)], overrides=smaller) is None
