"""Tasks and acts that the deciding thread runs as one group."""

import threading
from concurrent.futures import Future

from roost.model.fleet import Departure
from roost.placement.write_plan import Act


def departure(name, results):
    """Return the act of a departure; its name and result are added to ``results``."""

    def answer(result):
        results.append((name, result))
        if isinstance(result, Exception):
            raise result
        return name

    return Act(deed=Departure(instance_uuids=(name,)), answer=answer)


def submit_together(serving, *tasks):
    """Submit tasks behind a long one, so that they become one group; return their outcomes."""
    gate = threading.Event()
    outcomes = [Future() for _ in tasks]
    serving.submit(lambda _current: gate.wait(30), Future())
    for task, outcome in zip(tasks, outcomes, strict=True):
        serving.submit(task, outcome)
    gate.set()
    return outcomes
