"""NUMA topologies and PCI devices as Nova stores them in compute nodes: JSON of its objects."""

from collections.abc import Mapping
from typing import Any

import msgspec

from roost.model.devices.numa import NumaTopology
from roost.model.host import PciPool

_POOL_FIELDS = ("vendor_id", "product_id", "count")
# Nova keeps these properties among the tags of a pool.
_TAG_FIELDS = ("dev_type", "address")


def read_numa_topology(text: str | None) -> NumaTopology | None:
    """Read the topology of a compute node; None: it reports none.

    Raises:
        ValueError: the text is not the JSON of a topology.

    Source:
        nova/objects/numa.py, NUMATopology 1.2, NUMACell 1.5, NUMAPagesTopology 1.1;
        nova/objects/network_metadata.py, NetworkMetadata 1.0. Older versions lack fields.
    """
    if not text:
        return None
    cells = [_cell(_data(cell)) for cell in _data(msgspec.json.decode(text))["cells"]]
    return msgspec.convert({"cells": cells}, NumaTopology) if cells else None


def read_pci_pools(text: str | None) -> tuple[PciPool, ...]:
    """Read the free PCI devices of a compute node.

    Raises:
        ValueError: the text is not the JSON of a list of pools.

    Source:
        nova/objects/pci_device_pool.py, from_pci_stats: PciDevicePoolList 1.1, or plain pools of old computes;
        nova/pci/stats.py for the properties among the tags.
    """
    found = msgspec.json.decode(text) if text else None
    if not found:
        return ()
    if isinstance(found, dict) and "nova_object.data" in found:
        return tuple(_pool(**_data(each)) for each in _data(found)["objects"])
    return tuple(_plain_pool(each) for each in (found if isinstance(found, list) else [found]))


def _data(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of one of Nova's objects."""
    found = value["nova_object.data"]
    if not isinstance(found, dict):
        raise TypeError("the fields of an object are not a JSON object")
    return found


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    network = cell.get("network_metadata")
    networks = {} if network is None else _data(network)
    return {
        "id": cell["id"],
        "cpus": sorted(cell["cpuset"]),
        "pcpus": sorted(cell.get("pcpuset", ())),
        "memory_mb": cell["memory"],
        "cpu_usage": cell.get("cpu_usage", 0),
        "memory_usage": cell.get("memory_usage", 0),
        "pinned_cpus": sorted(cell.get("pinned_cpus", ())),
        "siblings": [sorted(core) for core in cell.get("siblings", ())],
        "mempages": [_pages(_data(pages)) for pages in cell.get("mempages", ())],
        "socket": cell.get("socket"),
        "physnets": sorted(networks.get("physnets", ())),
        "is_tunneled": bool(networks.get("tunneled", False)),
    }


def _pages(pages: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "size_kb": pages["size_kb"],
        "total": pages["total"],
        "used": pages.get("used", 0),
        "reserved": pages.get("reserved", 0),
    }


def _pool(*, tags: Mapping[str, Any], numa_node: int | None = None, **fields: Any) -> PciPool:
    rest = {name: value for name, value in tags.items() if name not in _TAG_FIELDS and name != "rp_uuid"}
    provider = tags.get("rp_uuid")
    return msgspec.convert(
        {
            **{name: fields[name] for name in _POOL_FIELDS},
            **{name: tags[name] for name in _TAG_FIELDS if tags.get(name) is not None},
            # Some machines report -1 for devices near no cell.
            "numa_node": numa_node if numa_node is not None and numa_node >= 0 else None,
            "tags": rest,
            "rp_uuids": [provider] if provider else [],
        },
        PciPool,
    )


def _plain_pool(pool: Mapping[str, Any]) -> PciPool:
    fields = {name: pool[name] for name in _POOL_FIELDS}
    tags = {name: value for name, value in pool.items() if name not in (*_POOL_FIELDS, "numa_node")}
    return _pool(tags=tags, numa_node=pool.get("numa_node"), **fields)
