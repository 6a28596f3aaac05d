"""Pods and nodes of a packing experiment, from the tables of the trace openb."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from roost.simulator.traces.openb import GPU_WHOLE, GPUS_MAX, MODELS_LENGTH_MAX, NODES, PODS, TIMES
from roost.simulator.traces.table import Row, read_table


class Pod(msgspec.Struct, frozen=True):
    """The request of a pod; equal pods are equal values."""

    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int  # of each GPU: 1..1000; 0 without GPUs
    gpu_spec: str = ""  # allowed models, separated by bars; empty: any

    @property
    def models(self) -> tuple[str, ...]:
        """The allowed models; empty: any."""
        return tuple(model for model in self.gpu_spec.split("|") if model)

    @property
    def total_milli(self) -> int:
        """The GPU milli of all its GPUs."""
        return self.gpu_count * self.gpu_milli


class Node(msgspec.Struct, frozen=True):
    """A node with equal GPUs."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpu_count: int
    model: str


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet, and the pods to draw from."""

    name: str
    nodes: list[Node]  # by name
    pods: list[Pod]  # by name
    durations_s: list[float] = []  # of each pod; empty: unknown

    @property
    def capacity_milli(self) -> int:
        """The GPU milli of the fleet."""
        return GPU_WHOLE * sum(node.gpu_count for node in self.nodes)


def read_nodes(path: Path) -> list[Node]:
    """Read the nodes, sorted by name.

    Raises:
        BadFile: the file is not a list of nodes, or no node has GPUs.
    """
    table = read_table(path)
    table.require_columns(NODES)
    rows = _rows_by_name(table.rows, "sn")
    nodes = [
        Node(
            name=name,
            cpu_milli=row.integer("cpu_milli", minimum=1),
            memory_mib=row.integer("memory_mib", minimum=1),
            gpu_count=row.integer("gpu", maximum=GPUS_MAX),
            model=row.text("model", default=""),
        )
        for name, row in rows
    ]
    if not any(node.gpu_count for node in nodes):
        raise table.rows[0].error("gpu", "no node has a GPU")
    return nodes


def read_pods(path: Path) -> list[Pod]:
    """Read the pods, sorted by name.

    Raises:
        BadFile: the file is not a list of pods, or no pod requests a GPU.
    """
    table = read_table(path)
    table.require_columns(PODS)
    pods = [_pod(row) for _, row in _rows_by_name(table.rows, "name")]
    if not any(pod.gpu_count for pod in pods):
        raise table.rows[0].error("num_gpu", "no pod requests a GPU")
    return pods


def read_durations(path: Path) -> list[float]:
    """Read how long each pod stays, in seconds, in the order of ``read_pods``.

    Raises:
        BadFile: the list has no times, or wrong ones.
    """
    table = read_table(path)
    table.require_columns(("name", *TIMES))
    durations = []
    for _, row in _rows_by_name(table.rows, "name"):
        starts_s, ends_s = row.number("creation_time"), row.number("deletion_time")
        if ends_s < starts_s:
            raise row.error("deletion_time", f"{ends_s:.15g} is before creation_time {starts_s:.15g}")
        durations.append(ends_s - starts_s)
    return durations


def _rows_by_name(rows: Sequence[Row], column: str) -> list[tuple[str, Row]]:
    named: dict[str, Row] = {}
    for row in rows:
        name = row.text(column)
        if name in named:
            raise row.error(column, f"{name} is repeated")
        named[name] = row
    return sorted(named.items())


def _pod(row: Row) -> Pod:
    cpu_milli, memory_mib = row.integer("cpu_milli"), row.integer("memory_mib")
    gpu_count = row.integer("num_gpu", maximum=GPUS_MAX)
    if not gpu_count:
        if not (cpu_milli or memory_mib):
            raise row.error(None, "the pod requests nothing")
        return Pod(cpu_milli, memory_mib, 0, 0)
    gpu_milli = min(row.integer("gpu_milli", minimum=1), GPU_WHOLE)
    if gpu_count > 1 and gpu_milli < GPU_WHOLE:
        raise row.error("gpu_milli", f"must be {GPU_WHOLE} for a pod with {gpu_count} GPUs, got {gpu_milli}")
    return Pod(cpu_milli, memory_mib, gpu_count, gpu_milli, row.text("gpu_spec", default="", maximum=MODELS_LENGTH_MAX))
