"""Items that release and claim together never exceed capacity, and add no amounts outside the inventory's bounds."""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.writes import InventoryRow, PutInventories, Release
from roost.store.memory_store import MemoryStore
from tests.contract.stores import CPU, claim, commit, generations, inventory, item, provider

TOTAL = 40


def inventories_write(store, min_unit, max_unit, step_size, total):
    """Return the write that gives the only inventory other bounds."""
    row = InventoryRow(CPU, total, 0, min_unit, max_unit, step_size, 1.0)
    return PutInventories(1, generations(store).get(1, 0), [row])


def odd(held, min_unit, max_unit, step_size, _total):
    """Return the count of each allocated amount that is outside the bounds."""
    return Counter(each for each in held.values() if not min_unit <= each <= max_unit or each % step_size)


def verdict(held, released, claimed, *, bounds):
    """Return the allocations after an item, or None if it must be refused."""
    left = {name: amount for name, amount in held.items() if name not in released}
    for name, amount in claimed:
        left[name] = amount
        is_odd = bool(odd({name: amount}, *bounds))
        if is_odd and odd(left, *bounds)[amount] > odd(held, *bounds)[amount]:
            return None
        used = sum(left.values())
        if used > bounds[3] and used > sum(held.values()):
            return None
    return left


def random_item(chance, held):
    """Return consumers to release, and claims that mostly repeat the released amounts."""
    released = chance.sample(sorted(held), chance.randint(0, min(2, len(held))))
    names = [name for name in range(45) if name in released or name not in held]
    claimed = chance.sample(names, chance.randint(1, 3))
    return released, [
        (name, chance.choice([held[each] for each in released] + [chance.randint(1, 8)])) for name in claimed
    ]


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_release_and_claim_in_one_item_match_slow_verdict(seed):
    chance, store, held, ids = random.Random(seed), MemoryStore(), {}, {}
    assert commit(store, item(provider(1))) == [""]
    for number in range(60):
        if number % 10 == 0:
            bounds = (chance.randint(1, 4), chance.randint(4, 8), chance.randint(1, 3), chance.randint(12, TOTAL))
            assert commit(store, item(inventories_write(store, *bounds))) == [""]
        released, claimed = random_item(chance, held)
        frees = [(ids[name], inventory(1), held[name]) for name in released]
        fresh = {name: 100 * number + name + 1 for name, _ in claimed}
        claims = [claim(fresh[name], (inventory(1), amount), instance=False) for name, amount in claimed]
        expected = verdict(held, released, claimed, bounds=bounds)
        (refusal,) = commit(store, item(Release([row[0] for row in frees], frees, []), *claims))
        assert (refusal == "") is (expected is not None), (held, released, claimed, bounds, refusal)
        if expected is not None:
            held, ids = expected, ids | fresh
