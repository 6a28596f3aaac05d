"""The facts of a node in the agent's report, made from the report of the driver."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from roost.model.host import HostFacts, PciPool
from roost.model.work.agent_terms import NodeResources, PciDevice

_NOWHERE: Mapping[str, str] = MappingProxyType({})
_NOTHING_FIXED: Mapping[str, float] = MappingProxyType({})


class Pooled(NamedTuple):
    """The devices of a host, in pools of equal devices."""

    pools: tuple[PciPool, ...] = ()
    addresses: tuple[tuple[str, ...], ...] = ()  # the devices of each pool


def facts_of(
    resources: NodeResources,
    *,
    metrics: Mapping[str, float],
    host_ip: str = "",
    rack: str = "",
    pools: tuple[PciPool, ...] | None = None,
    fixed_ratios: Mapping[str, float] = _NOTHING_FIXED,
) -> HostFacts:
    """Return the facts of a node, without the use by its guests.

    Only allocation ratios from the settings are included; the inventories have the others.

    Args:
        resources: from the driver.
        metrics: measurements by name.
        host_ip: IP address of its host; empty: unknown.
        rack: its rack; empty: unknown.
        pools: its devices; None: those of the driver.
        fixed_ratios: allocation ratios from the settings, by resource class; each report restores them.
    """
    return HostFacts(
        vcpus_total=resources.vcpus,
        memory_mb=resources.memory_mb,
        local_gb=resources.local_gb,
        hypervisor_type=resources.hypervisor_type,
        hypervisor_version=resources.hypervisor_version,
        supported_instances=resources.supported_instances,
        cpu_info=resources.cpu_info,
        stats=resources.stats,
        metrics={**metrics},
        pci_pools=pools_of(resources.pci_devices) if pools is None else pools,
        numa=resources.numa_topology,
        host_ip=host_ip,
        rack=rack,
        fixed_ratios={**fixed_ratios},
    )


def pools_of(devices: Sequence[PciDevice]) -> tuple[PciPool, ...]:
    """Return the pools of equal devices, by first occurrence.

    A pool of one device has its address.
    """
    return pool_devices(devices).pools


def pool_devices(devices: Sequence[PciDevice], *, providers: Mapping[str, str] = _NOWHERE) -> Pooled:
    """Return the pools of equal devices, with their devices; devices of different providers are not equal.

    Args:
        devices: the devices of a host.
        providers: address of a device -> uuid of its provider, for devices with a provider.
    """
    alike: dict[tuple[bytes, str], list[PciDevice]] = {}
    for device in devices:
        kind = msgspec.structs.replace(device, address="", parent_address="")
        key = msgspec.json.encode(kind, order="sorted"), providers.get(device.address, "")
        alike.setdefault(key, []).append(device)
    pools = tuple(_pool(each, provider) for (_, provider), each in alike.items())
    return Pooled(pools, tuple(tuple(device.address for device in each) for each in alike.values()))


def _pool(devices: Sequence[PciDevice], provider: str) -> PciPool:
    one = devices[0]
    return PciPool(
        vendor_id=one.vendor_id,
        product_id=one.product_id,
        dev_type=one.dev_type,
        numa_node=one.numa_node,
        address=one.address if len(devices) == 1 else "",
        tags={**one.tags},
        count=len(devices),
        rp_uuids=(provider,) if provider else (),
    )
