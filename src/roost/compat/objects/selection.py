"""Hosts chosen for instances, for Nova's conductor."""

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, kw_only=True, frozen=True)
class Selection:
    """A chosen host or alternate for one instance, with its claim."""

    compute_node_uuid: str
    service_host: str
    nodename: str
    cell_uuid: str
    limits: dict[str, Any]
    allocation_request: str  # JSON, the body of a claim
    allocation_request_version: str  # of the Placement API
    availability_zone: str | None
