"""Random questions end within their budgets: some rounds of what ``python -m tests.attack.costs`` does at length."""

from random import Random

from tests.attack.costs import Costs, World, asks, work_on


def test_random_questions_are_answered_or_cut_and_leave_the_columns_alone() -> None:
    random = Random(7)
    world = World(random)
    questions = asks(random, world)
    found: dict[str, Costs] = {}
    for _ in range(40):
        ask = next(questions)
        before = None if ask[0] == "decision" else _used(world)
        work_on(world, ask, found.setdefault(ask[0], Costs()))
        assert before is None or _used(world) == before
    assert sum(costs.questions for costs in found.values()) == 40
    assert {"candidates", "capacity", "decision", "dry run"} <= found.keys()


def _used(world: World) -> dict[int, list[int]]:
    return {class_id: each.used.view.tolist() for class_id, each in world.current.state.classes.items()}
