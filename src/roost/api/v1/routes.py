"""What can be asked: every path with its methods, what they read and write, who may, and who answers."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from roost.api.paths import Paths
from roost.api.v1.call import EVENT_STREAM, JSON, Handler
from roost.api.v1.capacity_schemas import CapacityBody, CapacityQuery
from roost.api.v1.decision_schemas import (
    DecisionBody,
    DecisionsPage,
    DecisionsQuery,
    NextBody,
    NextStep,
    ReplayBody,
    ShownDecision,
    ShownReplay,
    ShownWhy,
)
from roost.api.v1.handlers import capacity, decisions, events, instances
from roost.api.v1.instance_schemas import InstancesPage, InstancesQuery, ShownInstance
from roost.model.capacity import Capacity
from roost.model.notification import Notification

Kind = type[msgspec.Struct]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path."""

    handler: Handler
    about: str  # in a sentence
    answer: Kind | None  # None: nothing is said but that it was done
    media_type: str = JSON  # of the answer
    status: int = 200
    body: Kind | None = None
    query: Kind | None = None
    is_read: bool = True  # whether it changes nothing, so that readers may ask it
    is_for_agents: bool = False  # whether agents, which read all, may ask it although it changes something
    is_keyed: bool = False  # whether an idempotency key is minded

    @property
    def roles(self) -> tuple[str, ...]:
        """Who may ask it: one of these roles is enough."""
        agents = ("agent",) if self.is_read or self.is_for_agents else ()
        return ("admin", "service", *agents, *(("reader",) if self.is_read else ()))


# In the order in which the header ``allow`` lists the methods.
TABLE: Mapping[str, Mapping[str, Route]] = {
    "/decisions": {
        "GET": Route(
            handler=decisions.list_decisions, about="List stored decisions, newest first.", query=DecisionsQuery,
            answer=DecisionsPage,
        ),
        "POST": Route(
            handler=decisions.create, about="Choose hosts for a request and claim them; a refusal is a decision too.",
            body=DecisionBody, answer=ShownDecision, status=201, is_read=False, is_keyed=True,
        ),
    },
    "/decisions/{id}": {
        "GET": Route(handler=decisions.show, about="Show a stored decision.", answer=ShownDecision),
    },
    "/decisions/{id}/next": {
        "POST": Route(
            handler=decisions.advance, about="Release what an instance holds and claim its next alternate, at once.",
            body=NextBody, answer=NextStep, is_read=False, is_for_agents=True, is_keyed=True,
        ),
    },
    "/decisions/{id}/replay": {
        "POST": Route(
            handler=decisions.replay, about="Make a stored decision again from what it saw, and compare.",
            body=ReplayBody, answer=ShownReplay,
        ),
    },
    "/decisions/{id}/why": {
        "GET": Route(handler=decisions.why, about="Explain a stored decision.", answer=ShownWhy),
    },
    "/instances": {
        "GET": Route(
            handler=instances.list_instances, about="List instances.", query=InstancesQuery, answer=InstancesPage
        ),
    },
    "/instances/{id}": {
        "GET": Route(handler=instances.show, about="Show an instance.", answer=ShownInstance),
        "DELETE": Route(
            handler=instances.delete, about="Release what an instance holds.", answer=None, status=204, is_read=False,
            is_for_agents=True,
        ),
    },
    "/events": {
        "GET": Route(
            handler=events.follow, about="Follow what happens: server-sent events, whose data is of this form.",
            answer=Notification, media_type=EVENT_STREAM,
        ),
    },
    "/capacity": {
        "GET": Route(
            handler=capacity.of_flavor, about="Say how many more of a flavor fit.", query=CapacityQuery, answer=Capacity
        ),
        "POST": Route(
            handler=capacity.of_request, about="Say how many more of a request fit.", body=CapacityBody, answer=Capacity
        ),
    },
}  # fmt: skip

PATHS = Paths(TABLE)
