"""Huawei: NUMA hosts in racks, and sequences of VMs with affinity ("Dataset for topology-aware VM placement").

Row i of the hosts is ``host-i``. Its two NUMA nodes are children that offer VCPU and MEMORY_MB (the
trace's GB as 1,024 MiB); the root provider offers nothing. The trace lists the free amounts at the
start, so zero means a full NUMA node, without that inventory.

All resources of a VM are in request groups, none in its flavor: one group on any NUMA node (``numa`` 1),
or two isolated groups with half the amounts each (``numa`` 2; the first gets the odd core or GB). A
server group is a pair (strategy, group). With the strategy ``fault_domain``, the domain of a VM is in the hint
``fault_domain``.
VMs arrive in file order, one per second, and stay.
"""

from typing import get_args

from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.group import GroupPolicy, ServerGroup
from roost.model.host import HostFacts, HostSpec
from roost.model.names import AMOUNT_MAX
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Hints, Request, ResourceGroup
from roost.simulator.stable_uuids import uuid_of
from roost.simulator.traces.table import Row, Table
from roost.simulator.workload import Options, Stay, Workload, build_workload

HOSTS = ("CPU1", "RAM1", "CPU2", "RAM2")
RACKS = ("host_id", "rack_id")
VMS = ("flavor_vcpus", "flavor_ram", "numa", "strategy", "group", "domain")

_GIB = 1024  # MiB
_POLICIES: dict[str, GroupPolicy] = {
    "affinity": "affinity",
    "anti-affinity": "anti-affinity",
    "fault_domain": "fault-domain",
}
assert set(_POLICIES.values()) <= set(get_args(GroupPolicy))


def read(tables: dict[str, Table], options: Options) -> Workload:
    """Build a workload from the tables ``hosts``, ``racks`` and ``vms``."""
    vms = tables["vms"]
    racks = _racks(tables["racks"])
    providers: list[ProviderSpec] = []
    hosts: list[HostSpec] = []
    for index, row in enumerate(tables["hosts"].rows):
        name = f"host-{index}"
        if name not in racks:
            raise row.error(None, f"{name} has no rack in {tables['racks'].path}")
        tree = _tree(row, name)
        providers += tree
        hosts.append(HostSpec(provider_uuid=tree[0].uuid, host=name, node=name, facts=HostFacts(rack=racks[name])))
    groups: dict[tuple[str, str], ServerGroup] = {}
    stays = _stays(vms, groups)
    return build_workload(
        stays,
        name=vms.stem,
        fleet=Fleet(providers=providers, hosts=hosts, groups=list(groups.values())),
        options=options,
        notes=("hosts start with the free amounts that the trace lists", "one arrival a second, no departures"),
    )


def _racks(table: Table) -> dict[str, str]:
    racks: dict[str, str] = {}
    for row in table.rows:
        name = row.text("host_id")
        if name in racks:
            raise row.error("host_id", f"{name} is repeated")
        racks[name] = f"rack-{row.text('rack_id').removesuffix('.0')}"
    return racks


def _tree(row: Row, name: str) -> list[ProviderSpec]:
    root_uuid = uuid_of("huawei", "host", name)
    tree = [ProviderSpec(uuid=root_uuid, name=name)]
    for node in (0, 1):
        cores = row.integer(f"CPU{node + 1}")
        memory_mib = row.integer(f"RAM{node + 1}", maximum=AMOUNT_MAX // _GIB) * _GIB
        amounts = {"VCPU": cores, "MEMORY_MB": memory_mib}
        tree.append(
            ProviderSpec(
                uuid=uuid_of("huawei", "host", name, "numa", str(node)),
                name=f"{name}-numa{node}",
                parent_uuid=root_uuid,
                inventories={key: Inventory(total=amount) for key, amount in amounts.items() if amount},
                traits=frozenset({"HW_NUMA_ROOT"}),
            )
        )
    return tree


def _stays(vms: Table, groups: dict[tuple[str, str], ServerGroup]) -> list[Stay]:
    shapes: dict[tuple[int, int, int], tuple[Flavor, tuple[ResourceGroup, ...]]] = {}
    stays: list[Stay] = []
    for index, row in enumerate(vms.rows):
        shape = _shape(row)
        if shape not in shapes:
            shapes[shape] = _build_query(*shape)
        flavor, query_groups = shapes[shape]
        group, hints = _group(row, vms.stem, groups)
        request = Request(
            flavor=flavor,
            groups=query_groups,
            group=None if group is None else group.uuid,
            hints=hints,
            instance_uuids=(uuid_of("huawei", vms.stem, "vm", str(index)),),
        )
        stays.append(Stay(request, float(index)))
    return stays


def _shape(row: Row) -> tuple[int, int, int]:
    numa = row.integer("numa", minimum=1, maximum=2)
    cores = row.integer("flavor_vcpus", minimum=numa)
    return cores, row.integer("flavor_ram", minimum=numa, maximum=AMOUNT_MAX // _GIB), numa


def _build_query(cores: int, ram_gb: int, numa: int) -> tuple[Flavor, tuple[ResourceGroup, ...]]:
    groups = tuple(
        ResourceGroup(
            suffix=f"_NUMA{node}",
            # Rounded up for the first and down for the second, so that the sum is exact.
            resources={
                "VCPU": (cores + numa - 1 - node) // numa,
                "MEMORY_MB": (ram_gb + numa - 1 - node) // numa * _GIB,
            },
        )
        for node in range(numa)
    )
    specs = {"group_policy": "isolate"} if numa > 1 else {}
    # The flavor has no amounts: they would be requested in addition to those of the groups.
    return Flavor(name=f"{cores}c-{ram_gb}g-{numa}numa", extra_specs=specs), groups


def _group(row: Row, sequence: str, groups: dict[tuple[str, str], ServerGroup]) -> tuple[ServerGroup | None, Hints]:
    strategy = row.text("strategy", default="")
    if not strategy:
        for column in ("group", "domain"):
            if row.text(column, default=""):
                raise row.error(column, "must be empty for a VM without a strategy")
        return None, {}
    if strategy not in _POLICIES:
        raise row.error("strategy", f"must be empty or one of {', '.join(_POLICIES)}, got {strategy[:40]!r}")
    name = row.text("group").removesuffix(".0")
    key = strategy, name
    if key not in groups:
        uuid = uuid_of("huawei", sequence, "group", strategy, name)
        groups[key] = ServerGroup(uuid=uuid, name=f"{strategy}-{name}", policy=_POLICIES[strategy])
    if strategy != "fault_domain":
        if row.text("domain", default=""):
            raise row.error("domain", f"must be empty for a VM of strategy {strategy}")
        return groups[key], {}
    return groups[key], {"fault_domain": row.text("domain").removesuffix(".0")}
