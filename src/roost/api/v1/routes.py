"""The routes of ``/v1``: methods, bodies, queries and handlers of every path."""

from collections.abc import Mapping
from dataclasses import replace

from roost.api.path_tree import Paths
from roost.api.v1.call import EVENT_STREAM
from roost.api.v1.handlers import (
    agents,
    aggregates,
    capacity,
    changes,
    decision_list,
    decisions,
    drain,
    events,
    exports,
    fleet_columns,
    groups,
    history,
    hosts,
    orders,
    ratios,
    sessions,
    standings,
    status,
    stored_names,
)
from roost.api.v1.instance_routes import INSTANCE_ROUTES
from roost.api.v1.policies import policy_of
from roost.api.v1.route import Route
from roost.api.v1.schemas.agents import AgentsPage, AgentsQuery, LeaveQuery, ReportQuery, ShownAgent
from roost.api.v1.schemas.aggregates import (
    AggregateBody,
    AggregatePatch,
    AggregatesPage,
    AggregatesQuery,
    RatiosBody,
    RatiosResult,
    ShownAggregate,
    ZonesList,
)
from roost.api.v1.schemas.capacity import CapacityBody, CapacityQuery
from roost.api.v1.schemas.changes import ChangesPage, ChangesQuery
from roost.api.v1.schemas.decisions import (
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
)
from roost.api.v1.schemas.drain import DrainBody, DrainPlan
from roost.api.v1.schemas.exports import AuditResult
from roost.api.v1.schemas.fleet_columns import EventsQuery, NamesQuery
from roost.api.v1.schemas.groups import DetailedGroup, GroupBody, GroupsPage, GroupsQuery, ShownGroup
from roost.api.v1.schemas.hosts import (
    DetailedHost,
    HostsPage,
    HostsQuery,
    ServicePatch,
    ServicesPage,
    ShownService,
)
from roost.api.v1.schemas.instances import (
    OperationReference,
)
from roost.api.v1.schemas.sessions import NewSession, ShownSession
from roost.api.v1.schemas.status import FleetStatus, HistoryQuery
from roost.api.v1.schemas.stored_names import FlavorsList, FlavorsQuery, ImagesList, ShownImage
from roost.api.v1.wire.pages import PageQuery
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import FlavorEntry, ImageEntry
from roost.model.evidence.capacity import Capacity
from roost.model.evidence.fleet_history import FleetHistory
from roost.model.evidence.summary import Summary
from roost.model.flavor import Flavor
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
        "GET": Route(handler=decisions.why, about="Explain a stored decision.", answer=ShownWhy, work="past"),
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
}

_FLEET: Mapping[str, Mapping[str, Route]] = {
    "/changes": {
        "GET": Route(
            handler=changes.list_changes,
            about="List the changes by clients, newest first.",
            query=ChangesQuery,
            answer=ChangesPage,
            work="past",
        ),
    },
    "/aggregates": {
        "GET": Route(
            handler=aggregates.list_aggregates,
            about="List aggregates.",
            query=AggregatesQuery,
            answer=AggregatesPage,
            work="list",
        ),
        "POST": Route(
            handler=aggregates.create,
            about="Create an aggregate.",
            body=AggregateBody,
            answer=ShownAggregate,
            status=201,
            is_keyed=True,
        ),
    },
    "/aggregates/{uuid}": {
        "GET": Route(handler=aggregates.show, about="Show an aggregate.", answer=ShownAggregate),
        "PATCH": Route(
            handler=aggregates.change,
            about="Change the name or metadata of an aggregate.",
            body=AggregatePatch,
            answer=ShownAggregate,
        ),
        "DELETE": Route(
            handler=aggregates.delete,
            about="Delete an empty aggregate.",
            answer=None,
            status=204,
        ),
    },
    "/aggregates/{uuid}/ratios": {
        "POST": Route(
            handler=ratios.change,
            about="Change the allocation ratios of the hosts of an aggregate.",
            body=RatiosBody,
            answer=RatiosResult,
        ),
    },
    "/aggregates/{uuid}/hosts/{host}": {
        "PUT": Route(handler=aggregates.join, about="Add a host to an aggregate.", answer=None, status=204),
        "DELETE": Route(handler=aggregates.leave, about="Remove a host from an aggregate.", answer=None, status=204),
    },
    "/zones": {
        "GET": Route(
            handler=aggregates.list_zones,
            about="List availability zones and their hosts.",
            answer=ZonesList,
            work="list",
        ),
    },
    "/status": {
        "GET": Route(
            handler=status.show, about="Show the state of the fleet in numbers.", answer=FleetStatus, work="past"
        ),
    },
    "/history": {
        "GET": Route(
            handler=history.show,
            about="Show amounts and decisions over time.",
            query=HistoryQuery,
            answer=FleetHistory,
            work="past",
        ),
    },
    "/fleet": {
        "GET": Route(
            handler=exports.export_fleet, about="Export the fleet as a document.", answer=FleetDocument, work="scan"
        ),
    },
    "/fleet/columns": {
        "GET": Route(
            handler=fleet_columns.show,
            about="Show all hosts as a binary file of columns.",
            answer=None,
            media_type=fleet_columns.BYTES,
            needs_columns=False,
        ),
    },
    "/fleet/names": {
        "GET": Route(
            handler=fleet_columns.list_names,
            about="List the names of hosts, in the order of the columns.",
            query=NamesQuery,
            answer=None,
            media_type=fleet_columns.TEXT,
            needs_columns=False,
        ),
    },
    "/audit": {
        "GET": Route(
            handler=exports.audit, about="Check the database for consistency.", answer=AuditResult, work="scan"
        ),
    },
    "/hosts": {
        "GET": Route(handler=hosts.list_hosts, about="List hosts.", query=HostsQuery, answer=HostsPage, work="list"),
    },
    "/hosts/{host}": {
        "GET": Route(handler=hosts.show, about="Show a host by the name of its node or service.", answer=DetailedHost),
    },
    "/hosts/{host}/drain": {
        "POST": Route(
            handler=drain.drain,
            about="Drain a host, or plan the drain.",
            body=DrainBody,
            answer=DrainPlan,
            later=OperationReference,
            is_keyed=True,
            work="copy",
        ),
    },
    "/services": {
        "GET": Route(
            handler=hosts.list_services,
            about="List services.",
            query=PageQuery,
            answer=ServicesPage,
            work="list",
        ),
    },
    "/services/{host}": {
        "PATCH": Route(
            handler=hosts.change_service,
            about="Disable, enable or force down a service.",
            body=ServicePatch,
            answer=ShownService,
        ),
    },
    "/flavors": {
        "GET": Route(
            handler=stored_names.list_flavors,
            about="List stored flavors.",
            query=FlavorsQuery,
            answer=FlavorsList,
            is_long=lambda query: query.shapes,
        ),
    },
    "/flavors/{name}": {
        "GET": Route(handler=stored_names.show_flavor, about="Show a stored flavor.", answer=Flavor),
        "PUT": Route(
            handler=stored_names.store_flavor,
            about="Create or replace a stored flavor.",
            body=FlavorEntry,
            answer=Flavor,
        ),
        "DELETE": Route(handler=stored_names.delete_flavor, about="Delete a stored flavor.", answer=None, status=204),
    },
    "/images": {
        "GET": Route(handler=stored_names.list_images, about="List stored images.", answer=ImagesList),
    },
    "/images/{name}": {
        "GET": Route(handler=stored_names.show_image, about="Show a stored image.", answer=ShownImage),
        "PUT": Route(
            handler=stored_names.store_image,
            about="Create or replace a stored image.",
            body=ImageEntry,
            answer=ShownImage,
        ),
        "DELETE": Route(handler=stored_names.delete_image, about="Delete a stored image.", answer=None, status=204),
    },
    "/groups": {
        "GET": Route(
            handler=groups.list_groups,
            about="List server groups.",
            query=GroupsQuery,
            answer=GroupsPage,
            work="list",
        ),
        "POST": Route(
            handler=groups.create,
            about="Create a server group.",
            body=GroupBody,
            answer=ShownGroup,
            status=201,
            is_keyed=True,
        ),
    },
    "/groups/{uuid}": {
        "GET": Route(
            handler=groups.show, about="Show a server group and its members.", answer=DetailedGroup, work="list"
        ),
        "DELETE": Route(
            handler=groups.delete,
            about="Delete a server group without instances.",
            answer=None,
            status=204,
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


TABLE = _assign_policies({**_DECIDING, **INSTANCE_ROUTES, **_FLEET, **_ACCESS, **_AGENTS})
# Methods and paths that need no authentication.
OPEN_OPERATIONS = frozenset(
    (method, path) for path, methods in TABLE.items() for method, route in methods.items() if route.is_open
)
PATHS = Paths(TABLE)
