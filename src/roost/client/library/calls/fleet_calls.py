"""Calls about hosts, their resources, stored flavors and the state of the fleet."""

from roost.api.v1.schemas.hosts import (
    DetailedHost,
    HostsPage,
    HostsQuery,
    ProvidersQuery,
    ProviderTree,
    ServicePatch,
    ShownService,
)
from roost.api.v1.schemas.instances import OperationReference
from roost.api.v1.schemas.plans import DrainBody, DrainPlan
from roost.api.v1.schemas.status import FleetStatus
from roost.api.v1.schemas.stored_names import FlavorsList
from roost.client.library.exchange import Answer, Call, answer_reader, encode_body, path_of
from roost.model.documents.request_document import FlavorEntry
from roost.model.flavor import Flavor


def list_page(query: HostsQuery) -> Call[HostsPage]:
    """List a page of hosts."""
    return Call(method="GET", path=path_of("hosts", query=query), read=answer_reader(HostsPage))


def show(host: str) -> Call[DetailedHost]:
    """Show a host."""
    return Call(method="GET", path=path_of("hosts", host), read=answer_reader(DetailedHost))


def show_providers(host: str, query: ProvidersQuery) -> Call[ProviderTree]:
    """Show the provider tree of a host."""
    return Call(method="GET", path=path_of("hosts", host, "providers", query=query), read=answer_reader(ProviderTree))


def change_service(host: str, body: ServicePatch) -> Call[ShownService]:
    """Disable, enable or force down a service."""
    path = path_of("services", host)
    return Call(method="PATCH", path=path, body=encode_body(body), read=answer_reader(ShownService))


def drain(host: str, body: DrainBody, *, key: str) -> Call[DrainPlan | OperationReference]:
    """Drain a host, or plan the drain."""
    planned, accepted = answer_reader(DrainPlan), answer_reader(OperationReference)

    def read(answer: Answer) -> DrainPlan | OperationReference:
        return accepted(answer) if answer.status == 202 else planned(answer)

    path = path_of("hosts", host, "drain")
    return Call(method="POST", path=path, body=encode_body(body), key="" if body.dry_run else key, read=read)


def list_flavors() -> Call[FlavorsList]:
    """List stored flavors."""
    return Call(method="GET", path=path_of("flavors"), read=answer_reader(FlavorsList))


def store_flavor(name: str, body: FlavorEntry) -> Call[Flavor]:
    """Create or replace a stored flavor."""
    return Call(method="PUT", path=path_of("flavors", name), body=encode_body(body), read=answer_reader(Flavor))


def show_status() -> Call[FleetStatus]:
    """Show the state of the fleet in numbers."""
    return Call(method="GET", path=path_of("status"), read=answer_reader(FleetStatus))
