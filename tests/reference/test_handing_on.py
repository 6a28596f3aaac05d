"""Whatever is given back and taken in one item, no inventory has more than it may, nor more that keeps no bounds."""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.model.writes import InventoryRow, PutInventories, Release
from roost.store.memory_store import MemoryStore
from tests.contract.stores import CPU, claim, commit, generations, inventory, item, provider

TOTAL = 40


def offering(store, min_unit, max_unit, step_size, total):
    """Let the only inventory have other bounds."""
    row = InventoryRow(CPU, total, 0, min_unit, max_unit, step_size, 1.0)
    return PutInventories(1, generations(store).get(1, 0), [row])


def odd(held, min_unit, max_unit, step_size, _total):
    """Return how often each amount is held that keeps the bounds no more."""
    return Counter(each for each in held.values() if not min_unit <= each <= max_unit or each % step_size)


def verdict(held, gone, come, *, within):
    """Say slowly what is to come of an item: what is held afterwards; None: it is refused."""
    left = {name: amount for name, amount in held.items() if name not in gone}
    for name, amount in come:
        left[name] = amount
        is_odd = bool(odd({name: amount}, *within))
        if is_odd and odd(left, *within)[amount] > odd(held, *within)[amount]:
            return None
        used = sum(left.values())
        if used > within[3] and used > sum(held.values()):
            return None
    return left


def asked(chance, held):
    """Return who gives back all, and who takes how much: mostly what the others had."""
    gone = chance.sample(sorted(held), chance.randint(0, min(2, len(held))))
    names = [name for name in range(45) if name in gone or name not in held]
    come = chance.sample(names, chance.randint(1, 3))
    return gone, [(name, chance.choice([held[each] for each in gone] + [chance.randint(1, 8)])) for name in come]


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_no_bounds_are_passed_by_what_is_handed_on(seed):
    chance, store, held, ids = random.Random(seed), MemoryStore(), {}, {}
    assert commit(store, item(provider(1))) == [""]
    for number in range(60):
        if number % 10 == 0:
            within = (chance.randint(1, 4), chance.randint(4, 8), chance.randint(1, 3), chance.randint(12, TOTAL))
            assert commit(store, item(offering(store, *within))) == [""]
        gone, come = asked(chance, held)
        frees = [(ids[name], inventory(1), held[name]) for name in gone]
        fresh = {name: 100 * number + name + 1 for name, _ in come}
        claims = [claim(fresh[name], (inventory(1), amount), instance=False) for name, amount in come]
        expected = verdict(held, gone, come, within=within)
        (refusal,) = commit(store, item(Release([row[0] for row in frees], frees, []), *claims))
        assert (refusal == "") is (expected is not None), (held, gone, come, within, refusal)
        if expected is not None:
            held, ids = expected, ids | fresh
