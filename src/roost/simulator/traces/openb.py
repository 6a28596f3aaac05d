"""openb: nodes and pods of a GPU cluster (Alibaba cluster trace 2023, ``cluster-trace-gpu-v2023``).

A node is a provider with VCPU and MEMORY_MB, and one child per GPU with 1,000 CUSTOM_GPU_MILLI and the
trait CUSTOM_GPU_<MODEL>. **One VCPU is a thousandth of a core here**, since pods request fractions of
cores.

VCPU and MEMORY_MB of a pod are in its flavor, and each GPU is a request group. Several groups are
isolated, so that each gets a different GPU. The allowed models are an any-of trait of each group.
"""

import re

import msgspec

from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request, ResourceGroup
from roost.simulator.stable_uuids import uuid_of
from roost.simulator.traces.table import TEXT_MAX, Row, Table
from roost.simulator.workload import Options, Stay, Workload, build_workload

NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
PODS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
# Absent in traces for experiments with static clusters; then pods arrive in file order and stay.
TIMES = ("creation_time", "deletion_time")

GPU_MILLI = "CUSTOM_GPU_MILLI"
GPU_WHOLE = 1000
# Larger counts indicate that columns were confused.
GPUS_MAX = 64
MODELS_LENGTH_MAX = 1024


class PodShape(msgspec.Struct, frozen=True):
    """The resources of a pod."""

    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int  # of each GPU
    models: str  # allowed models, separated by bars; empty: any


def read(tables: dict[str, Table], options: Options) -> Workload:
    """Build a workload from the tables ``nodes`` and ``pods``."""
    nodes, pods = tables["nodes"], tables["pods"]
    providers: list[ProviderSpec] = []
    hosts: list[HostSpec] = []
    names: set[str] = set()
    for row in nodes.rows:
        tree = _read_tree(row, names)
        providers += tree
        hosts.append(HostSpec(provider_uuid=tree[0].uuid, host=tree[0].name, node=tree[0].name))
    stays = _stays(pods)
    return build_workload(
        stays,
        name=pods.stem,
        fleet=Fleet(providers=providers, hosts=hosts),
        options=options,
        notes=("one VCPU is 1/1000 of a core",),
    )


def gpu_trait(model: str) -> str:
    """Return the trait of a GPU model.

    >>> gpu_trait("V100M16")
    'CUSTOM_GPU_V100M16'
    """
    return "CUSTOM_GPU_" + re.sub(r"[^A-Z0-9_]", "_", model.upper())


def build_tree(name: str, *, cpu_milli: int, memory_mib: int, gpu_count: int, model: str) -> list[ProviderSpec]:
    """Return the providers of a node: its root, then its GPUs in order."""
    root_uuid = uuid_of("openb", "node", name)
    inventories = {"VCPU": Inventory(total=cpu_milli), "MEMORY_MB": Inventory(total=memory_mib)}
    root = ProviderSpec(uuid=root_uuid, name=name, inventories=inventories)
    if not gpu_count:
        return [root]
    traits = frozenset({gpu_trait(model)})
    gpu = {GPU_MILLI: Inventory(total=GPU_WHOLE)}
    return [
        root,
        *(
            ProviderSpec(
                uuid=uuid_of("openb", "node", name, "gpu", str(index)),
                name=f"{name}-gpu{index}",
                parent_uuid=root_uuid,
                inventories=gpu,
                traits=traits,
            )
            for index in range(gpu_count)
        ),
    ]


def _read_tree(row: Row, names: set[str]) -> list[ProviderSpec]:
    gpu_count = row.integer("gpu", maximum=GPUS_MAX)
    return build_tree(
        _fresh_name(row, "sn", names),
        cpu_milli=row.integer("cpu_milli", minimum=1),
        memory_mib=row.integer("memory_mib", minimum=1),
        gpu_count=gpu_count,
        model=row.text("model") if gpu_count else "",
    )


def _stays(pods: Table) -> list[Stay]:
    has_times = any(column in pods.header for column in TIMES)
    if has_times:
        pods.require_columns(TIMES)
    names: set[str] = set()
    # Pods of one shape share one flavor and its groups, as in a cloud.
    shapes: dict[PodShape, tuple[Flavor, tuple[ResourceGroup, ...]]] = {}
    stays: list[Stay] = []
    for index, row in enumerate(pods.rows):
        name = _fresh_name(row, "name", names)
        shape = _shape(row)
        if shape not in shapes:
            shapes[shape] = build_query(shape)
        flavor, groups = shapes[shape]
        request = Request(flavor=flavor, groups=groups, instance_uuids=(uuid_of("openb", pods.stem, name),))
        if not has_times:
            stays.append(Stay(request, float(index)))
            continue
        starts_s, ends_s = row.number("creation_time"), row.number("deletion_time")
        if ends_s < starts_s:
            raise row.error("deletion_time", f"{ends_s:.15g} is before creation_time {starts_s:.15g}")
        stays.append(Stay(request, starts_s, ends_s))
    return stays


def _shape(row: Row) -> PodShape:
    cpu_milli, memory_mib = row.integer("cpu_milli"), row.integer("memory_mib")
    gpu_count = row.integer("num_gpu", maximum=GPUS_MAX)
    gpu_milli = row.integer("gpu_milli", maximum=GPU_WHOLE)
    if bool(gpu_count) != bool(gpu_milli):
        raise row.error("gpu_milli", f"{gpu_milli} does not match num_gpu {gpu_count}")
    if not (cpu_milli or memory_mib or gpu_count):
        raise row.error(None, "the pod requests nothing")
    models = row.text("gpu_spec", default="", maximum=MODELS_LENGTH_MAX) if gpu_count else ""
    if models and not all(1 <= len(model.strip()) <= TEXT_MAX for model in models.split("|")):
        raise row.error("gpu_spec", f"must be models separated by bars, got {models[:40]!r}")
    return PodShape(cpu_milli, memory_mib, gpu_count, gpu_milli, models)


def build_query(shape: PodShape) -> tuple[Flavor, tuple[ResourceGroup, ...]]:
    """Return the flavor of a pod, and one resource group for each of its GPUs."""
    name = f"{shape.cpu_milli}m-{shape.memory_mib}MiB"
    if shape.gpu_count:
        name += f"-{shape.gpu_count}x{shape.gpu_milli}gpu"
    if shape.models:
        name += f"-{shape.models}"
    required: tuple[frozenset[str], ...] = ()
    if shape.models:
        required = (frozenset(gpu_trait(model.strip()) for model in shape.models.split("|")),)
    groups = tuple(
        ResourceGroup(suffix=f"_GPU{index}", resources={GPU_MILLI: shape.gpu_milli}, required=required)
        for index in range(shape.gpu_count)
    )
    specs = {"group_policy": "isolate"} if shape.gpu_count > 1 else {}
    return Flavor(name=name, vcpus=shape.cpu_milli, memory_mb=shape.memory_mib, extra_specs=specs), groups


def _fresh_name(row: Row, column: str, names: set[str]) -> str:
    name = row.text(column)
    if name in names:
        raise row.error(column, f"{name} is repeated")
    names.add(name)
    return name
