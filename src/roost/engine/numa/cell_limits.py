"""The NUMA limits of a decision, as sent to a host."""

from collections.abc import Mapping
from typing import Any

import msgspec

from roost.engine.numa.cell import Overcommit
from roost.errors import BadRequest
from roost.model.devices.topology import NetworkNeeds

_NAME = "numa_topology"


class _Networks(msgspec.Struct):
    physnets: frozenset[str] = frozenset()
    tunneled: bool = False


class _Limits(msgspec.Struct):
    cpu_allocation_ratio: float
    ram_allocation_ratio: float
    network_metadata: _Networks | None = None


def read_overcommit(limits: Mapping[str, Any]) -> Overcommit | None:
    """Read the overcommit ratios for shared processors and memory; None: no limits.

    Raises:
        BadRequest: the NUMA limits are malformed.
    """
    numa = _read_limits(limits)
    return None if numa is None else Overcommit(cpu=numa.cpu_allocation_ratio, memory=numa.ram_allocation_ratio)


def read_networks(limits: Mapping[str, Any]) -> NetworkNeeds | None:
    """Read the networks whose cards must be near a guest; None: no such networks.

    Raises:
        BadRequest: the NUMA limits are malformed.
    """
    numa = _read_limits(limits)
    if numa is None or numa.network_metadata is None:
        return None
    return NetworkNeeds(physnets=numa.network_metadata.physnets, is_tunneled=numa.network_metadata.tunneled)


def _read_limits(limits: Mapping[str, Any]) -> _Limits | None:
    document = limits.get(_NAME)
    if not isinstance(document, Mapping):
        return None
    try:
        return msgspec.convert(document, _Limits)
    except msgspec.ValidationError as error:
        raise BadRequest(f"limits of {_NAME} are invalid: {error}") from None
