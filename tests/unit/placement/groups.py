"""Tasks and acts that wait for the thread that owns the columns, and are done as one group."""

import threading
from concurrent.futures import Future

from roost.model.fleet import Departure
from roost.placement.write_plan import Act


def leaving(name, told):
    """Give the act of an instance that leaves; ``told`` hears what came of it."""

    def answer(result):
        told.append((name, result))
        if isinstance(result, Exception):
            raise result
        return name

    return Act(deed=Departure(instance_uuids=(name,)), answer=answer)


def together(serving, *tasks):
    """Let tasks wait behind a long one, so that they are one group; give their outcomes."""
    going_on = threading.Event()
    outcomes = [Future() for _ in tasks]
    serving.submit(lambda _current: going_on.wait(30), Future())
    for task, outcome in zip(tasks, outcomes, strict=True):
        serving.submit(task, outcome)
    going_on.set()
    return outcomes
