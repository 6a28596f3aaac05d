"""Request bodies of agents in the /v1 API, and rows that conductors commit."""

import msgspec

from roost.model.work.orders import OrderBody
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.simulator.stable_uuids import uuid_of

RUN, NEXT_RUN = uuid_of("run", "1"), uuid_of("run", "2")
ORDER = msgspec.json.encode(OrderBody(operation=uuid_of("operation"), limit_s=60.0))


def registration(run=RUN, **more):
    return {"run": run, "driver": "fake", "software": "roost 1", "nodes": [], **more}


def commit_rows(own, *rows):
    """Commit work rows as a conductor does."""
    plan = own.serving.run
    verdicts = plan(lambda current: current.commit([Item(writes=(), work=tuple(map(Put, rows)))]))
    assert verdicts == [None]


def poll_body(*, host="host-0", run=RUN, fence=1, held=(), wait_s=0):
    agents = [{"host": host, "run": run, "fence": fence, "held": list(held)}]
    return {"agents": agents, "wait_s": wait_s}


def answer_body(outcome="ok", **more):
    return {"run": RUN, "outcome": outcome, **more}
