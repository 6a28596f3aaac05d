"""Hosts chosen for instances, as Nova's conductor reads them."""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, kw_only=True, frozen=True)
class Selection:
    """A host for one instance, with what is claimed there or, of an alternate, would be."""

    compute_node_uuid: str
    service_host: str
    nodename: str
    cell_uuid: str
    limits: dict[str, Any]
    allocation_request: str  # JSON, the body of a claim
    allocation_request_version: str  # of the Placement API
    availability_zone: str | None
