from roost.api.http import Request
from roost.errors import OverBudget
from roost.placement.current import Current
from roost.store.memory_store import MemoryStore

OVER_BUDGET = OverBudget("the work", seconds=1.0, limit="a limit")


def used(budget_s, **more):
    """Return the used share of a budget at the start of a task, and after it."""
    request = Request(method="GET", path="/things", headers={})
    task = request.with_budget(budget_s, lambda _current: request.budget_use(), **more)
    return task(Current(MemoryStore())), request.budget_use()


def test_used_share_grows_with_the_time():
    share, after = used(1e6, too_slow=lambda: OVER_BUDGET)
    assert (0.0 < share < 0.6, after) == (True, 0.0)
    share, _ = used(1e-9, too_slow=lambda: OVER_BUDGET)
    assert share > 1.0


def test_first_attempt_with_less_time_has_no_share():
    assert used(1e-9) == (0.0, 0.0)
