"""Compute nodes in the database of a cell, and the facts in their rows."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, DateTime, Float, Integer, Row, String, column, or_, select, table

from roost.errors import first_line
from roost.model.host import HostFacts
from roost.nova.database.stored_devices import read_numa_topology, read_pci_pools

COMPUTE_NODES = table(
    "compute_nodes",
    column("id", Integer),
    column("uuid", String),
    column("host", String),
    column("hypervisor_hostname", String),
    column("service_id", Integer),
    column("mapped", Integer),
    column("deleted", Integer),
    column("deleted_at", DateTime),
    column("created_at", DateTime),
    column("updated_at", DateTime),
    column("free_disk_gb", Integer),
    column("cpu_allocation_ratio", Float),
    column("hypervisor_type", String),
    column("hypervisor_version", Integer),
    column("host_ip", String),
    column("cpu_info", String),
    column("supported_instances", String),
    column("stats", String),
    column("metrics", String),
    column("numa_topology", String),
    column("pci_stats", String),
)
_COLUMNS = COMPUTE_NODES.c
_READ = [each for each in _COLUMNS if each.name not in {"mapped", "deleted", "deleted_at", "created_at", "updated_at"}]
_ROWS_AT_ONCE = 500
# Stored as shares of 1; Nova's rules read percents, as whole numbers.
_PERCENTS = frozenset(
    {"cpu.user.percent", "cpu.kernel.percent", "cpu.idle.percent", "cpu.iowait.percent", "cpu.percent"}
)


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A compute node without the state of its service."""

    uuid: str
    host: str | None  # None: an old row; the row of its service names the host
    node: str
    service_id: int | None
    facts: HostFacts
    is_sized: bool  # the compute has reported its use
    problem: str = ""  # of an invalid row, which has no facts


class NodeMark(msgspec.Struct, frozen=True):
    """Columns of a compute node that show a change of its row."""

    id: int
    uuid: str
    updated_at: datetime | None


def read_node_marks(connection: Connection, *, since: datetime | None) -> list[NodeMark | int]:
    """Read which compute nodes may have changed.

    Args:
        since: time of the oldest changes to return; None: return all nodes.

    Returns:
        a mark for each; the id alone if the row is deleted.
    """
    query = select(_COLUMNS.id, _COLUMNS.uuid, _COLUMNS.updated_at, _COLUMNS.deleted)
    if since is None:
        query = query.where(_COLUMNS.deleted == 0)
    else:
        # A deletion or insertion does not set the time of the update.
        times = (_COLUMNS.updated_at, _COLUMNS.created_at, _COLUMNS.deleted_at)
        query = query.where(or_(*(each >= since for each in times)))
    return [
        number if deleted else NodeMark(number, uuid or "", updated_at)
        for number, uuid, updated_at, deleted in connection.execute(query)
    ]


def read_nodes(connection: Connection, ids: Iterable[int], *, cell: str) -> Iterator[tuple[int, NodeRow]]:
    """Read compute nodes by id, and yield each with its id, without rows that were deleted meanwhile.

    Args:
        cell: uuid of the cell, for the facts.
    """
    wanted = sorted(ids)
    for start in range(0, len(wanted), _ROWS_AT_ONCE):
        part = wanted[start : start + _ROWS_AT_ONCE]
        query = select(*_READ).where(_COLUMNS.id.in_(part), _COLUMNS.deleted == 0)
        yield from ((row.id, _node_of(row, cell=cell)) for row in connection.execute(query))


def _node_of(row: Row[Any], *, cell: str) -> NodeRow:
    problem = "" if row.uuid else "it has no uuid"
    facts = HostFacts(cell=cell)
    try:
        facts = facts_of(row, cell=cell)
    except (AttributeError, LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
        problem = f"{type(error).__name__}: {first_line(error)}"
    return NodeRow(
        uuid=row.uuid or "",
        host=row.host,
        node=row.hypervisor_hostname or "",
        service_id=row.service_id,
        facts=facts,
        is_sized=row.free_disk_gb is not None,
        problem=problem,
    )


def facts_of(row: Any, *, cell: str) -> HostFacts:
    """Return the facts in the row of a compute node; totals come from inventories, so they stay unset.

    Args:
        row: has the columns of ``compute_nodes`` as attributes.

    Raises:
        ValueError, AttributeError, LookupError, TypeError or MsgspecError: a column is invalid.

    Source:
        nova/objects/compute_node.py, ComputeNode._from_db_object; nova/scheduler/host_manager.py,
        HostState._update_from_compute_node. In Nova, a host with invalid ``pci_stats`` has no devices.
    """
    stats = {name: str(value) for name, value in _object(row.stats).items() if value is not None}
    return HostFacts(
        cpu_allocation_ratio=row.cpu_allocation_ratio or None,  # 0: the compute has not set it
        hypervisor_type=row.hypervisor_type or "",
        hypervisor_version=int(row.hypervisor_version or 0),
        supported_instances=tuple(map(_hypervisor_spec, _list(row.supported_instances))),
        cpu_info=_cpu_info(row.cpu_info),
        stats=stats,
        metrics=dict(_metrics(row.metrics)),
        pci_pools=read_pci_pools(row.pci_stats),
        numa=read_numa_topology(row.numa_topology),
        num_io_ops=int(stats.get("io_workload", 0)),
        failed_builds=int(stats.get("failed_builds", 0)),
        host_ip=row.host_ip or "",
        cell=cell,
    )


def _object(text: str | None) -> dict[str, Any]:
    found = json.loads(text) if text else {}
    if not isinstance(found, dict):
        raise TypeError("a column with a JSON object has another value")
    return found


def _list(text: str | None) -> list[Any]:
    found = (json.loads(text) if text else None) or []
    if not isinstance(found, list):
        raise TypeError("a column with a JSON list has another value")
    return found


def _cpu_info(text: str | None) -> dict[str, Any]:
    """Read the description of processors; drivers without one store free text, which Nova's rules ignore too.

    Source:
        nova/virt/libvirt/driver.py, _get_cpu_info; other drivers store an empty text or a word.
    """
    return _object(text) if text and text.lstrip().startswith("{") else {}


def _hypervisor_spec(value: Any) -> tuple[str, str, str]:
    """Read an architecture, a hypervisor type and a mode.

    Source:
        nova/objects/hv_spec.py, HVSpec.from_list.
    """
    architecture, hypervisor_type, mode = value[:3]
    return architecture or "", hypervisor_type or "", mode or ""


def _metrics(text: str | None) -> Iterator[tuple[str, float]]:
    """Yield the name and value of each metric, except memory bandwidth, which has a value for each NUMA cell.

    Source:
        nova/objects/monitor_metric.py, MonitorMetricList.from_json.
    """
    for each in _list(text):
        if "value" in each:
            name, value = each["name"], each["value"]
            yield name, float(int(value * 100 if name in _PERCENTS else value))
