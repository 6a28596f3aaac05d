"""Routes of the fleet: hosts, aggregates, stored flavors and images, groups, and overviews of the fleet."""

from collections.abc import Mapping

from roost.api.v1.fleet.fleet_queries import ColumnsQuery, NamesQuery
from roost.api.v1.handlers import (
    aggregates,
    changes,
    drain,
    exports,
    fleet_columns,
    groups,
    history,
    host_details,
    hosts,
    ratios,
    settings,
    status,
    stored_names,
)
from roost.api.v1.route import Route
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
from roost.api.v1.schemas.changes import ChangesPage, ChangesQuery
from roost.api.v1.schemas.exports import AuditResult, ShownSettings
from roost.api.v1.schemas.groups import DetailedGroup, GroupBody, GroupsPage, GroupsQuery, ShownGroup
from roost.api.v1.schemas.hosts import (
    DetailedHost,
    HostEvents,
    HostEventsQuery,
    HostsPage,
    HostsQuery,
    ProvidersQuery,
    ProviderTree,
    ServicePatch,
    ServicesPage,
    ShownService,
)
from roost.api.v1.schemas.instances import (
    OperationReference,
)
from roost.api.v1.schemas.plans import DrainBody, DrainPlan
from roost.api.v1.schemas.status import FleetStatus, HistoryQuery
from roost.api.v1.schemas.stored_names import FlavorsList, FlavorsQuery, ImagesList, ShownImage
from roost.api.v1.wire.pages import PageQuery
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import FlavorEntry, ImageEntry
from roost.model.evidence.fleet_history import FleetHistory
from roost.model.flavor import Flavor

FLEET_ROUTES: Mapping[str, Mapping[str, Route]] = {
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
            query=ColumnsQuery,
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
    "/settings": {
        "GET": Route(handler=settings.show, about="Show the settings in force.", answer=ShownSettings),
    },
    "/hosts": {
        "GET": Route(handler=hosts.list_hosts, about="List hosts.", query=HostsQuery, answer=HostsPage, work="list"),
    },
    "/hosts/{host}": {
        "GET": Route(handler=hosts.show, about="Show a host by the name of its node or service.", answer=DetailedHost),
    },
    "/hosts/{host}/providers": {
        "GET": Route(
            handler=host_details.show_providers,
            about="Show the provider tree of a host, with the holders of its resources.",
            query=ProvidersQuery,
            answer=ProviderTree,
            work="list",
        ),
    },
    "/hosts/{host}/events": {
        "GET": Route(
            handler=host_details.list_events,
            about="List the events of a host, newest first.",
            query=HostEventsQuery,
            answer=HostEvents,
            work="list",
        ),
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
