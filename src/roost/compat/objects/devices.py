"""Nova's objects for PCI requests, and conversions from and to Roost's."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from roost.compat.objects.record import Record
from roost.model.devices.pci import PciRequest


@dataclass(slots=True, kw_only=True)
class InstancePCIRequest(Record):
    """A request for a number of equivalent PCI devices."""

    FLAVOR_ALIAS: ClassVar[int] = 0
    NEUTRON_PORT: ClassVar[int] = 1

    count: int = 1
    spec: list[dict[str, Any]] = field(default_factory=list)  # alternatives
    alias_name: str | None = None
    request_id: str | None = None
    numa_policy: str | None = None

    @property
    def source(self) -> int:
        """The source of the request: an alias in the flavor, or a port."""
        return self.NEUTRON_PORT if self.alias_name is None else self.FLAVOR_ALIAS


def show_device(request: PciRequest) -> InstancePCIRequest:
    """Convert Roost's PCI request to Nova's object."""
    alternatives = [{name: _show_value(value) for name, value in each.items()} for each in request.alternatives]
    return InstancePCIRequest(
        count=request.count,
        spec=alternatives,
        alias_name=request.name if request.source == "flavor" else None,
        request_id=request.request_id or None,
        numa_policy=request.numa_policy,
    )


def _show_value(value: str | tuple[str, ...] | None) -> str | list[str] | None:
    return list(value) if isinstance(value, tuple) else value


def _read_value(value: Any) -> list[str] | str | None:
    if isinstance(value, list | tuple):
        return [str(each) for each in value]
    return None if value is None else str(value)


def read_device(request: Any) -> PciRequest:
    """Convert Nova's PCI request to Roost's, for rules.

    Raises:
        msgspec.ValidationError: the request is invalid.
    """
    alternatives = [{name: _read_value(value) for name, value in each.items()} for each in request.spec]
    return msgspec.convert(
        {
            "count": request.count,
            "alternatives": alternatives,
            "numa_policy": request.numa_policy or "legacy",
            "source": "flavor" if request.source == InstancePCIRequest.FLAVOR_ALIAS else "port",
            "request_id": request.request_id or "",
            "name": request.alias_name or "",
        },
        PciRequest,
    )


class InstancePCIRequests(list[InstancePCIRequest]):
    """The requests of an instance."""

    @property
    def requests(self) -> list[InstancePCIRequest]:
        """The list itself, under Nova's name."""
        return self


def read_devices(shown: Any) -> tuple[PciRequest, ...]:
    """Convert Nova's PCI requests to Roost's, for rules.

    Args:
        shown: the requests, or an object with an attribute ``requests``.
    """
    requests: Iterable[Any] = getattr(shown, "requests", shown) or ()
    return tuple(map(read_device, requests))
