"""Support of an installed Nova: Nova's own objects for its filters, with look-ups in Roost's columns.

Without an installed Nova, these functions import nothing.
"""

import contextlib
import functools
import warnings
from collections.abc import Sequence
from typing import Any

from roost.compat.aliases import is_installed
from roost.compat.objects import current_fleet, lookups
from roost.compat.objects.host_records import Instance
from roost.compat.scheduler.host_state import pools_of
from roost.model.devices.numa import NumaCell
from roost.model.host import HostFacts


@functools.cache
def objects() -> Any:
    """Return ``nova.objects`` of an installed Nova, with redirected look-ups; None: not installed."""
    if not is_installed("nova"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Imports of Nova's libraries cause deprecation warnings.
        from nova import context  # type: ignore[import-not-found,unused-ignore]
        from nova import objects as nova_objects
    nova_objects.register_all()
    _redirect_lookups(nova_objects, context)
    return nova_objects


def _redirect_lookups(nova_objects: Any, context: Any) -> None:
    """Redirect the look-ups of Nova's classes to Roost's columns, because this process has no database of Nova."""
    for kind, names in (
        ("AggregateList", ("get_all", "get_by_host", "get_by_metadata_key", "get_by_metadata")),
        ("InstanceList", ("get_by_host", "get_by_host_and_node", "get_uuids_by_host", "get_all")),
        ("ComputeNodeList", ("get_all", "get_all_by_host")),
        ("ComputeNode", ("get_by_host_and_nodename", "get_first_node_by_host_for_old_compat")),
        ("Service", ("get_by_compute_host", "get_by_host_and_binary")),
        ("ServiceList", ("get_all", "get_by_binary")),
        ("InstanceGroupList", ("get_all",)),
    ):
        for name in names:
            setattr(getattr(nova_objects, kind), name, getattr(getattr(lookups, kind), name))
    nova_objects.InstanceGroup.get_by_uuid = lambda _context, uuid: current_fleet.get_group(uuid)
    nova_objects.InstanceGroup.get_by_instance_uuid = lambda _context, uuid: current_fleet.get_group_of(uuid)
    nova_objects.Instance.get_by_uuid = lambda _context, uuid, *_more, **_options: current_fleet.get_instance(uuid)
    nova_objects.Aggregate.get_by_uuid = lambda _context, uuid: current_fleet.get_aggregate(uuid)
    nova_objects.CellMapping.get_by_uuid = lambda _context, uuid: nova_objects.CellMapping(uuid=uuid)
    nova_objects.InstanceList.fill_metadata = lambda _self: None
    context.target_cell = lambda current, _cell: contextlib.nullcontext(current)


def topology_of(facts: HostFacts) -> Any:
    """Return the NUMA cells of a host as Nova's object; None: no cells."""
    if facts.numa is None:
        return None
    nova = objects()
    return nova.NUMATopology(cells=[_cell(nova, cell) for cell in facts.numa.cells])


def _cell(nova: Any, cell: NumaCell) -> Any:
    return nova.NUMACell(
        id=cell.id,
        socket=cell.socket,
        cpuset=set(cell.cpus),
        pcpuset=set(cell.pcpus),
        memory=cell.memory_mb,
        cpu_usage=cell.cpu_usage,
        memory_usage=cell.memory_usage,
        pinned_cpus=set(cell.pinned_cpus),
        siblings=[set(core) for core in cell.siblings],
        mempages=[
            nova.NUMAPagesTopology(size_kb=pages.size_kb, total=pages.total, used=pages.used, reserved=pages.reserved)
            for pages in cell.mempages
        ],
        network_metadata=nova.NetworkMetadata(physnets=set(cell.physnets), tunneled=cell.is_tunneled),
    )


def pci_stats_of(facts: HostFacts) -> Any:
    """Return the devices of a host as Nova's object; None: no devices."""
    if not facts.pci_pools:
        return None
    from nova.pci import stats  # type: ignore[import-not-found,unused-ignore]

    nova = objects()
    field_names = ("product_id", "vendor_id", "numa_node", "count")
    pools = []
    for pool in pools_of(facts):
        tags = {name: value for name, value in pool.items() if name not in (*field_names, "rp_uuids", "address")}
        if pool["rp_uuids"]:
            tags["rp_uuid"] = pool["rp_uuids"][0]
        if pool["address"]:
            tags["address"] = pool["address"]
        pools.append(nova.PciDevicePool(**{name: pool[name] for name in field_names}, tags=tags))
    return stats.PciDeviceStats(topology_of(facts), nova.PciDevicePoolList(objects=pools))


def instance_of(instance: Instance) -> Any:
    """Return an instance as Nova's object."""
    properties = {f"image_{name}": str(value) for name, value in instance.properties.items()}
    return objects().Instance(
        uuid=instance.uuid,
        host=instance.host,
        node=instance.node,
        project_id=instance.project_id,
        user_id=instance.user_id,
        image_ref="",
        system_metadata=properties,
    )


def numa_topology_of(spec: Any) -> Any:
    """Return the requested NUMA cells as Nova's object; None: none.

    Raises:
        Exception: an error of Nova, if flavor and image conflict.
    """
    from nova.virt import hardware  # type: ignore[import-not-found,unused-ignore]

    nova = objects()
    flavor = nova.Flavor(
        flavorid=spec.flavor.name,
        name=spec.flavor.name,
        vcpus=spec.flavor.vcpus,
        memory_mb=spec.flavor.memory_mb,
        root_gb=spec.flavor.root_gb,
        ephemeral_gb=spec.flavor.ephemeral_gb,
        swap=spec.flavor.swap,
        extra_specs=dict(spec.flavor.extra_specs),
    )
    properties = {name: str(value) for name, value in spec.image.properties.items()}
    return hardware.numa_get_constraints(flavor, nova.ImageMeta.from_dict({"properties": properties}))


def devices_of(requests: Sequence[Any]) -> Any:
    """Return requests for devices as Nova's object; None: none."""
    if not requests:
        return None
    nova = objects()
    return nova.InstancePCIRequests(
        requests=[
            nova.InstancePCIRequest(
                count=each.count,
                spec=each.spec,
                alias_name=each.alias_name,
                request_id=each.request_id,
                numa_policy=each.numa_policy,
            )
            for each in requests
        ]
    )


def networks_of(metadata: Any) -> Any:
    """Return the networks of a request as Nova's object; None: no network metadata."""
    if metadata is None:
        return None
    return objects().NetworkMetadata(physnets=set(metadata.physnets), tunneled=metadata.tunneled)
