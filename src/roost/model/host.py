"""Hosts: root providers with a service on them, and what is known of them."""

import msgspec


class HostFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a host says of itself. A total left out comes from the inventories of the host's tree.

    Used amounts and instance counts are never facts: they come from allocations and instances.
    """

    vcpus_total: int | None = None
    memory_mb: int | None = None  # MiB
    local_gb: int | None = None  # GiB
    cpu_allocation_ratio: float | None = None
    hypervisor_type: str = ""
    hypervisor_version: int = 0  # 1002003 is 1.2.3
    supported_instances: tuple[tuple[str, str, str], ...] = ()  # (architecture, hypervisor type, vm mode)
    cpu_info: dict[str, object] = {}
    stats: dict[str, str] = {}
    metrics: dict[str, float] = {}
    num_io_ops: int = 0
    failed_builds: int = 0
    host_ip: str = ""
    rack: str = ""
    cell: str = ""
    is_disabled: bool = False
    disabled_reason: str = ""
    is_forced_down: bool = False
    reported_at_s: float | None = None  # None: no agent ever reported, so it counts as up


class HostSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A host: a service on a root provider. One row a node; a service may have several."""

    provider_uuid: str
    host: str  # name of the service
    node: str  # name of the node, the provider's name
    facts: HostFacts = HostFacts()


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """A set of hosts with metadata. Joining one labels the host's root provider."""

    uuid: str
    name: str = ""
    metadata: dict[str, str] = {}
