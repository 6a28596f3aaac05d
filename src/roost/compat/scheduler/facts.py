"""What host states say, as our rules see it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from roost.compat.numa import topology_from
from roost.compat.objects.host_records import read_moment
from roost.model.allocation import Mappings
from roost.model.host import HostFacts, PciPool

if TYPE_CHECKING:
    from roost.compat.scheduler.host_state import HostState


def facts_of(host: "HostState") -> HostFacts:
    """Return what a host state says, as our rules see it; a row of columns has its facts already."""
    facts: HostFacts | None = getattr(host, "facts", None)
    if facts is not None:
        return facts
    return HostFacts(
        vcpus_total=host.vcpus_total,
        hypervisor_type=host.hypervisor_type or "",
        hypervisor_version=host.hypervisor_version or 0,
        supported_instances=tuple((each[0], each[1], each[2]) for each in host.supported_instances),
        cpu_info=host.told_cpu_info(),
        stats=host.stats,
        metrics=host.told_metrics(),
        pci_pools=tuple(map(_pool_of, host.told_pci_pools())),
        numa=topology_from(host.numa_topology),
        host_ip=host.host_ip or "",
        rack=host.rack,
        cell=host.cell_uuid,
        is_disabled=bool(host.service.get("disabled", False)),
        is_forced_down=bool(host.service.get("forced_down", False)),
        reported_at_s=read_moment(host.service.get("last_seen_up")),
    )


def mappings_of(candidate: Mapping[str, Any]) -> Mappings:
    """Return which providers serve each resource group in an allocation candidate."""
    return candidate.get("mappings") or {}


_POOL_KEYS = frozenset(PciPool.__struct_fields__) - {"tags", "rp_uuids"}


def _pool_of(told: Mapping[str, Any]) -> PciPool:
    """Return a pool of devices as our rules see it; what has no field of its own is a tag."""
    known = {key: told[key] for key in _POOL_KEYS if told.get(key) is not None}
    nodes = told.get("rp_uuids") or filter(None, [told.get("rp_uuid")])
    rest = told.keys() - _POOL_KEYS - {"tags", "rp_uuids", "rp_uuid"}
    tags = {key: _tag(told[key]) for key in rest - {"devices"}} | dict(told.get("tags") or {})
    return msgspec.convert({**known, "tags": tags, "rp_uuids": sorted(nodes)}, PciPool, strict=False)


def _tag(value: Any) -> str | list[str] | None:
    if isinstance(value, list | tuple | set | frozenset):
        return sorted(map(str, value))
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
