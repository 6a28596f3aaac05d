"""The routes of ``/v1``: methods, bodies, queries and handlers of every path."""

from collections.abc import Mapping
from dataclasses import replace

from roost.api.path_tree import Paths
from roost.api.v1.call import EVENT_STREAM
from roost.api.v1.fleet.fleet_queries import EventsQuery
from roost.api.v1.fleet_routes import FLEET_ROUTES
from roost.api.v1.handlers import (
    agents,
    applied_plans,
    capacity,
    comparisons,
    decision_list,
    decisions,
    events,
    orders,
    plans,
    sessions,
    standings,
)
from roost.api.v1.handlers.fleet_columns import BYTES
from roost.api.v1.instance_routes import INSTANCE_ROUTES
from roost.api.v1.policies import policy_of
from roost.api.v1.route import Route
from roost.api.v1.schemas.agents import AgentsPage, AgentsQuery, LeaveQuery, ReportQuery, ShownAgent
from roost.api.v1.schemas.capacity import CapacityBody, CapacityColumnsBody, CapacityColumnsQuery, CapacityQuery
from roost.api.v1.schemas.decisions import (
    ComparisonBody,
    DecisionBatch,
    DecisionBatchBody,
    DecisionBody,
    DecisionsPage,
    DecisionsQuery,
    ExplanationBody,
    NextBody,
    NextStep,
    RefusalsQuery,
    ReplayBody,
    ShownDecision,
    ShownReplay,
    ShownWhy,
    WhyQuery,
)
from roost.api.v1.schemas.instances import OperationReference
from roost.api.v1.schemas.plans import (
    ApplyBody,
    BalanceBody,
    ConsolidationBody,
    HostsDrainBody,
    RehearsedPlan,
    RoomBody,
)
from roost.api.v1.schemas.sessions import NewSession, ShownSession
from roost.model.evidence.capacity import Capacity
from roost.model.evidence.comparison import Comparison
from roost.model.evidence.move_plans import BalancePlan, ConsolidationPlan, DrainMoves, RoomPlan
from roost.model.evidence.summary import Summary
from roost.model.host import HostFacts
from roost.model.work.notification import Notification
from roost.model.work.orders import Acknowledgement, OrderAnswer, Poll, PollAnswer, Registration, RegistrationAnswer
from roost.model.work.standing import Holders, Standings

# The protocol of agents.
_AGENTS: Mapping[str, Mapping[str, Route]] = {
    "/agents": {
        "GET": Route(handler=agents.list_agents, about="List agents.", query=AgentsQuery, answer=AgentsPage),
    },
    "/agents/{host}": {
        "GET": Route(handler=agents.show, about="Show the agent of a host.", answer=ShownAgent),
        "PUT": Route(
            handler=agents.register,
            about="Register the agent of a host, with its guests.",
            body=Registration,
            answer=RegistrationAnswer,
            body_max_bytes=None,
        ),
        "DELETE": Route(
            handler=agents.leave,
            about="Deregister the agent of a host; the host is down at once.",
            query=LeaveQuery,
            answer=None,
            status=204,
        ),
    },
    "/agents/{host}/nodes/{node}": {
        "PUT": Route(
            handler=agents.report,
            about="Report the facts of a node.",
            body=HostFacts,
            query=ReportQuery,
            answer=None,
            status=204,
            body_max_bytes=None,
        ),
    },
    "/agents/{host}/standings": {
        "POST": Route(
            handler=standings.show,
            about="Show the standings of instances on a host.",
            body=Holders,
            answer=Standings,
            body_max_bytes=None,
        ),
    },
    "/orders/poll": {
        "POST": Route(
            handler=orders.poll,
            about="Send heartbeats of agents, and wait for orders.",
            body=Poll,
            answer=PollAnswer,
            body_max_bytes=None,
        ),
    },
    "/orders/{id}/answer": {
        "POST": Route(
            handler=orders.answer,
            about="Reply to an order; only the first reply counts.",
            body=OrderAnswer,
            answer=Acknowledgement,
            body_max_bytes=None,
        ),
    },
}


# The header ``allow`` lists methods in this order.
_DECIDING: Mapping[str, Mapping[str, Route]] = {
    "/decisions": {
        "GET": Route(
            handler=decision_list.list_decisions,
            about="List stored decisions, newest first.",
            query=DecisionsQuery,
            answer=DecisionsPage,
            is_long=decision_list.is_long,
            work="list",
        ),
        "POST": Route(
            handler=decisions.create,
            about="Choose hosts for a request and claim their resources.",
            body=DecisionBody,
            answer=ShownDecision,
            status=201,
            is_keyed=True,
            work="copy",
        ),
    },
    "/decisions/batch": {
        "POST": Route(
            handler=decisions.create_batch,
            about="Make several independent decisions in one request.",
            body=DecisionBatchBody,
            answer=DecisionBatch,
            is_batch=True,
        ),
    },
    "/decisions/{id}": {
        "GET": Route(handler=decisions.show, about="Show a stored decision.", answer=ShownDecision),
    },
    "/decisions/{id}/next": {
        "POST": Route(
            handler=decisions.advance,
            about="Move a claim to the next alternate, atomically.",
            body=NextBody,
            answer=NextStep,
            is_keyed=True,
        ),
    },
    "/decisions/{id}/replay": {
        "POST": Route(
            handler=decisions.replay,
            about="Replay a stored decision, and compare the results.",
            body=ReplayBody,
            answer=ShownReplay,
            work="past",
        ),
    },
    "/decisions/{id}/why": {
        "GET": Route(
            handler=decisions.why,
            about="Explain a stored decision.",
            query=WhyQuery,
            answer=ShownWhy,
            work="past",
        ),
    },
    "/explanations": {
        "POST": Route(
            handler=decisions.explain,
            about="Explain what a request would get now; nothing is claimed.",
            body=ExplanationBody,
            answer=ShownWhy,
            work="past",
        ),
    },
    "/comparisons": {
        "POST": Route(
            handler=comparisons.create,
            about="Decide recorded requests again under several sets of settings.",
            body=ComparisonBody,
            answer=Comparison,
            work="scan",
        ),
    },
    "/refusals": {
        "GET": Route(
            handler=decision_list.summarise_refusals,
            about="Count refusals by reason and by request.",
            query=RefusalsQuery,
            answer=Summary,
            work="past",
        ),
    },
    "/events": {
        "GET": Route(
            handler=events.follow,
            about="Follow notifications as server-sent events.",
            query=EventsQuery,
            answer=Notification,
            media_type=EVENT_STREAM,
            needs_columns=False,
        ),
    },
    "/plans/make-room": {
        "POST": Route(
            handler=plans.room,
            about="Plan the fewest moves to make room for a request.",
            body=RoomBody,
            answer=RoomPlan,
            work="copy",
        ),
    },
    "/plans/consolidate": {
        "POST": Route(
            handler=plans.emptying,
            about="Plan moves to empty as many hosts as possible.",
            body=ConsolidationBody,
            answer=ConsolidationPlan,
            work="copy",
        ),
    },
    "/plans/drain": {
        "POST": Route(
            handler=plans.draining,
            about="Plan moves to empty given hosts.",
            body=HostsDrainBody,
            answer=DrainMoves,
            work="copy",
        ),
    },
    "/plans/balance": {
        "POST": Route(
            handler=plans.balancing,
            about="Plan moves to make the used shares of hosts more equal.",
            body=BalanceBody,
            answer=BalancePlan,
            work="copy",
        ),
    },
    "/plans/apply": {
        "POST": Route(
            handler=applied_plans.apply,
            about="Apply the moves of a plan, or rehearse them.",
            body=ApplyBody,
            answer=RehearsedPlan,
            later=OperationReference,
            is_keyed=True,
            work="copy",
        ),
    },
    "/capacity": {
        "GET": Route(
            handler=capacity.of_flavor,
            about="Count how many more instances of a flavor fit.",
            query=CapacityQuery,
            answer=Capacity,
            work="copy",
        ),
        "POST": Route(
            handler=capacity.of_request,
            about="Count how many more instances of a request fit.",
            body=CapacityBody,
            answer=Capacity,
            work="copy",
        ),
    },
    "/capacity/columns": {
        "GET": Route(
            handler=capacity.columns_of_flavor,
            about="Count how many more instances of a flavor fit on each host, as a binary file of columns.",
            query=CapacityColumnsQuery,
            answer=None,
            media_type=BYTES,
            work="copy",
        ),
        "POST": Route(
            handler=capacity.columns_of_request,
            about="Count how many more instances of a request fit on each host, as a binary file of columns.",
            body=CapacityColumnsBody,
            answer=None,
            media_type=BYTES,
            work="copy",
        ),
    },
}

_ACCESS: Mapping[str, Mapping[str, Route]] = {
    "/session": {
        "POST": Route(handler=sessions.create, about="Begin a session of a browser.", answer=NewSession, status=201),
        "GET": Route(handler=sessions.show, about="Show the client and its permissions.", answer=ShownSession),
        "DELETE": Route(
            handler=sessions.delete,
            about="End the session of the browser.",
            answer=None,
            status=204,
            is_open=True,
        ),
    },
}


def _assign_policies(table: Mapping[str, Mapping[str, Route]]) -> Mapping[str, Mapping[str, Route]]:
    return {
        path: {
            method: route if route.is_open else replace(route, policy=policy_of(method, path))
            for method, route in methods.items()
        }
        for path, methods in table.items()
    }


TABLE = _assign_policies({**_DECIDING, **INSTANCE_ROUTES, **FLEET_ROUTES, **_ACCESS, **_AGENTS})
# Methods and paths that need no authentication.
OPEN_OPERATIONS = frozenset(
    (method, path) for path, methods in TABLE.items() for method, route in methods.items() if route.is_open
)
PATHS = Paths(TABLE)
