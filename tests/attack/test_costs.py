"""Random questions end within their budgets: a short run of ``python -m tests.attack.costs``."""

from random import Random

from tests.attack.costs import Costs, RandomFleet, answer_question, generate_questions


def test_random_questions_are_answered_or_cut_off_without_side_effects() -> None:
    random = Random(7)
    fleet = RandomFleet(random)
    questions = generate_questions(random, fleet)
    costs_by_kind: dict[str, Costs] = {}
    for _ in range(40):
        question = next(questions)
        before = None if question[0] == "decision" else _usage_by_class(fleet)
        answer_question(fleet, question, costs_by_kind.setdefault(question[0], Costs()))
        assert before is None or _usage_by_class(fleet) == before
    assert sum(costs.questions for costs in costs_by_kind.values()) == 40
    assert {"candidates", "capacity", "decision", "dry run"} <= costs_by_kind.keys()


def _usage_by_class(fleet: RandomFleet) -> dict[int, list[int]]:
    return {class_id: each.used.view.tolist() for class_id, each in fleet.current.state.classes.items()}
