"""Hosts for Nova's filters and weighers."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from roost.compat.numa import topology_for, topology_from
from roost.compat.objects import Aggregate, RequestSpec
from roost.compat.objects.host_records import read_moment
from roost.model.allocation import Mappings
from roost.model.host import HostFacts, PciPool
from roost.scheduler.pipeline.consumption import ReportedDemand

HostAggregate = Aggregate


@dataclass(slots=True)
class HostState:
    """The state of one host (one node), updated after each choice during a request.

    Memory and disk amounts are in MiB, except for names ending in ``_gb``.
    """

    host: str
    nodename: str
    cell_uuid: str = ""
    uuid: str = ""
    hypervisor_hostname: str = ""
    hypervisor_type: str | None = None
    hypervisor_version: int | None = None
    host_ip: str | None = None
    cpu_info: Any = None  # JSON text, or its content
    supported_instances: list[list[str]] = field(default_factory=list)
    total_usable_ram_mb: int = 0
    free_ram_mb: int = 0
    total_usable_disk_gb: int = 0
    free_disk_mb: int = 0
    disk_mb_used: int = 0
    vcpus_total: int = 0
    vcpus_used: int = 0
    cpu_allocation_ratio: float = 1.0
    ram_allocation_ratio: float = 1.0
    disk_allocation_ratio: float = 1.0
    num_instances: int = 0
    num_io_ops: int = 0
    failed_builds: int = 0
    stats: dict[str, str] = field(default_factory=dict)
    # A dict of numbers, or of objects with a value; or a list of objects with name and value; or JSON text of these.
    metrics: Any = field(default_factory=dict)
    pci_stats: Any = None  # pools of devices, or an object with ``pools``
    numa_topology: Any = None  # an object with ``cells``, under Nova's names
    limits: dict[str, Any] = field(default_factory=dict)
    service: dict[str, Any] = field(default_factory=dict)  # disabled, forced_down, last_seen_up in seconds
    aggregates: list[HostAggregate] = field(default_factory=list)
    instances: dict[str, Any] = field(default_factory=dict)  # by uuid
    allocation_candidates: list[Any] = field(default_factory=list)
    rack: str = ""
    updated: Any = None

    def update(
        self,
        compute: Mapping[str, Any] | None = None,
        service: Mapping[str, Any] | None = None,
        aggregates: Iterable[HostAggregate] | None = None,
        inst_dict: Mapping[str, Any] | None = None,
    ) -> None:
        """Update the state from a compute node, its service, aggregates and instances.

        Source:
            nova/scheduler/host_manager.py, HostState.update.
        """
        if compute is not None:
            self._update_from_compute_node(compute)
        if service is not None:
            self.service = dict(service)
        if aggregates is not None:
            self.aggregates = list(aggregates)
        if inst_dict is not None:
            self.instances = dict(inst_dict)

    def _update_from_compute_node(self, compute: Mapping[str, Any]) -> None:
        if compute.get("free_disk_gb") is None:
            return  # The node is not ready yet.
        reported_at = compute.get("updated_at")
        if self.updated is not None and reported_at is not None and self.updated > reported_at:
            return  # The amounts consumed here since then are newer than the report.
        least, free_gb = compute.get("disk_available_least"), compute["free_disk_gb"]
        self.free_disk_mb = (free_gb if least is None else min(least, free_gb)) * 1024
        self.total_usable_disk_gb = compute["local_gb"]
        self.disk_mb_used = compute["local_gb_used"] * 1024
        self.free_ram_mb = compute["free_ram_mb"]
        self.total_usable_ram_mb = compute["memory_mb"]
        self.vcpus_total = compute["vcpus"]
        self.vcpus_used = compute["vcpus_used"]
        self.updated = reported_at
        copied = (
            "uuid",
            "hypervisor_hostname",
            "hypervisor_type",
            "hypervisor_version",
            "host_ip",
            "cpu_info",
            "cpu_allocation_ratio",
            "ram_allocation_ratio",
            "disk_allocation_ratio",
            "supported_instances",
            "metrics",
            "pci_stats",
            "numa_topology",
        )
        for name in copied:
            if compute.get(name) is not None:
                setattr(self, name, compute[name])
        self.stats = dict(compute.get("stats") or {})
        self.num_instances = int(self.stats.get("num_instances", 0))
        self.num_io_ops = int(self.stats.get("io_workload", 0))
        self.failed_builds = int(self.stats.get("failed_builds", 0))

    def consume_from_request(self, spec_obj: RequestSpec) -> None:
        """Count an instance of a request as placed here, for later choices.

        Source:
            nova/scheduler/host_manager.py, HostState.consume_from_request.
        """
        disk_mb = (spec_obj.root_gb + spec_obj.ephemeral_gb) * 1024
        self.free_ram_mb -= spec_obj.memory_mb
        self.free_disk_mb -= disk_mb
        self.disk_mb_used += disk_mb
        self.vcpus_used += spec_obj.vcpus
        self.num_instances += 1
        self.num_io_ops += 1
        self._consume_facts(spec_obj)
        if spec_obj.instance_uuid is not None:
            self.instances[spec_obj.instance_uuid] = spec_obj.image

    def _consume_facts(self, spec_obj: RequestSpec) -> None:
        request, facts = spec_obj.to_request(), facts_of(self)
        mappings = mappings_of((self.allocation_candidates or [{}])[0])
        after = ReportedDemand(request, request.pci_requests).take_from(facts, limits=self.limits, mappings=mappings)
        if after.numa is not facts.numa:
            self.numa_topology = topology_for(after)
        if after.pci_pools is not facts.pci_pools:
            pools = pools_of(after)
            if hasattr(self.pci_stats, "pools"):
                self.pci_stats.pools = pools
            else:
                self.pci_stats = pools

    def read_cpu_info(self) -> dict[str, Any]:
        """Return the facts about the processor, parsed if they are text."""
        cpu_info = self.cpu_info
        if isinstance(cpu_info, str):
            try:
                cpu_info = json.loads(cpu_info)
            except ValueError:
                return {}
        return cpu_info if isinstance(cpu_info, dict) else {}

    def read_metrics(self) -> dict[str, float]:
        """Return the metrics by name."""
        metrics = json.loads(self.metrics) if isinstance(self.metrics, str) else self.metrics or {}
        if isinstance(metrics, Mapping):
            values: dict[str, Any] = {name: getattr(each, "value", each) for name, each in metrics.items()}
        else:
            values = {str(_field(each, "name")): _field(each, "value") for each in metrics}
        return {name: float(value) for name, value in values.items() if value is not None}

    def read_pci_pools(self) -> list[Mapping[str, Any]]:
        """Return the pools of free devices."""
        return list(getattr(self.pci_stats, "pools", self.pci_stats) or [])

    def read_image_properties(self) -> list[Mapping[str, str]]:
        """Return the image properties of all instances with a known image."""
        images = [getattr(each, "image_meta", each) for each in self.instances.values()]
        return [image.properties for image in images if hasattr(image, "properties")]


def _field(entry: Any, name: str) -> Any:
    return entry[name] if isinstance(entry, Mapping) else getattr(entry, name)


def pools_of(facts: HostFacts) -> list[dict[str, Any]]:
    """Return the pools of free devices in Nova's form, with tags as entries."""
    pools = [msgspec.structs.asdict(pool) for pool in facts.pci_pools]
    return [{**pool.pop("tags"), **pool} for pool in pools]


def facts_of(host: HostState) -> HostFacts:
    """Return the facts of a host state for Roost's rules; a ``HostRow`` has them already."""
    facts: HostFacts | None = getattr(host, "facts", None)
    if facts is not None:
        return facts
    return HostFacts(
        vcpus_total=host.vcpus_total,
        hypervisor_type=host.hypervisor_type or "",
        hypervisor_version=host.hypervisor_version or 0,
        supported_instances=tuple((each[0], each[1], each[2]) for each in host.supported_instances),
        cpu_info=host.read_cpu_info(),
        stats=host.stats,
        metrics=host.read_metrics(),
        pci_pools=tuple(map(_pool_of, host.read_pci_pools())),
        numa=topology_from(host.numa_topology),
        host_ip=host.host_ip or "",
        rack=host.rack,
        cell=host.cell_uuid,
        is_disabled=bool(host.service.get("disabled", False)),
        is_forced_down=bool(host.service.get("forced_down", False)),
        reported_at_s=read_moment(host.service.get("last_seen_up")),
    )


def mappings_of(candidate: Mapping[str, Any]) -> Mappings:
    """Return the providers of each request group in an allocation candidate."""
    return candidate.get("mappings") or {}


_POOL_KEYS = frozenset(PciPool.__struct_fields__) - {"tags", "rp_uuids"}


def _pool_of(pool: Mapping[str, Any]) -> PciPool:
    """Return a pool of devices for Roost's rules; unknown entries become tags."""
    fields = {key: pool[key] for key in _POOL_KEYS if pool.get(key) is not None}
    nodes = pool.get("rp_uuids") or filter(None, [pool.get("rp_uuid")])
    rest = pool.keys() - _POOL_KEYS - {"tags", "rp_uuids", "rp_uuid"}
    tags = {key: _tag(pool[key]) for key in rest - {"devices"}} | dict(pool.get("tags") or {})
    return msgspec.convert({**fields, "tags": tags, "rp_uuids": sorted(nodes)}, PciPool, strict=False)


def _tag(value: Any) -> str | list[str] | None:
    if isinstance(value, list | tuple | set | frozenset):
        return sorted(map(str, value))
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
