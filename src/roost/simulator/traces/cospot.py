"""CoSpot: VMs of the Azure packing trace 2020 with concrete cores and memory.

The trace has no hosts, so an option describes the fleet: one or more kinds of hosts as
``COUNTxCORESc/RAMm``, separated by commas: ``400x9600c/2300m,50x4800c/4600m``. Cores and ram have the
arbitrary units of the trace, and count as VCPU and MEMORY_MB.

Times are days. A VM with a start before 0 runs already when the trace starts, so it arrives first.
"""

import re

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostSpec
from roost.model.names import AMOUNT_MAX
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.simulator.stable_uuids import uuid_of
from roost.simulator.traces.table import Row, Table
from roost.simulator.workload import Options, Stay, Workload, build_workload

VMS = ("vmId", "tenantId", "cores", "ram", "starttime", "endtime")

HOSTS_SYNTAX = "COUNTxCORESc/RAMm, as in 400x9600c/2300m, several separated by commas"
_KIND = re.compile(r"([0-9]{1,10})x([0-9]{1,10})c/([0-9]{1,10})m")
_HOSTS_MAX = 1_000_000
_DAY_S = 86_400.0


def read(tables: dict[str, Table], options: Options) -> Workload:
    """Build a workload from the table ``vms`` and the hosts of the options.

    Raises:
        BadRequest: the options describe no hosts, or invalid ones.
    """
    vms = tables["vms"]
    fleet = build_fleet(options.hosts)
    ids: set[str] = set()
    flavors: dict[tuple[int, int], Flavor] = {}
    stays: list[Stay] = []
    for row in vms.rows:
        vm_id = row.text("vmId")
        if vm_id in ids:
            raise row.error("vmId", f"{vm_id} is repeated")
        ids.add(vm_id)
        size = row.integer("cores", minimum=1), row.integer("ram", minimum=1)
        if size not in flavors:
            flavors[size] = Flavor(name=f"{size[0]}c-{size[1]}m", vcpus=size[0], memory_mb=size[1])
        request = Request(
            flavor=flavors[size],
            project_id=row.text("tenantId", default=""),
            instance_uuids=(uuid_of("cospot", vms.stem, vm_id),),
        )
        stays.append(_build_stay(row, request))
    running = sum(stay.starts_s < 0 for stay in stays)
    notes = ("units of VCPU and MEMORY_MB are the trace's own", f"{running:,} VMs are running when the trace starts")
    return build_workload(stays, name=vms.stem, fleet=fleet, options=options, notes=notes)


def build_fleet(hosts: tuple[str, ...]) -> Fleet:
    """Build the fleet described by kinds of hosts.

    >>> [host.host for host in build_fleet(("2x8c/64m",)).hosts]
    ['host-0', 'host-1']

    Raises:
        BadRequest: the description is missing or invalid.
    """
    kinds = [kind.strip() for text in hosts for kind in text.split(",")]
    if not kinds:
        raise BadRequest(
            "a CoSpot trace has no hosts: describe them by --hosts COUNTxCORESc/RAMm or, for roost lab compact, by "
            "--host CORESc/RAMm"
        )
    providers: list[ProviderSpec] = []
    for kind in kinds:
        match = _KIND.fullmatch(kind)
        if match is None:
            raise BadRequest(f"hosts must be {HOSTS_SYNTAX}, got {kind[:60]!r}")
        count, cores, ram = (int(number) for number in match.groups())
        if not (1 <= cores <= AMOUNT_MAX and 1 <= ram <= AMOUNT_MAX):
            raise BadRequest(f"cores and ram of a host must be 1..{AMOUNT_MAX}, got {kind}")
        if not 1 <= count <= _HOSTS_MAX - len(providers):
            raise BadRequest(f"there must be 1..{_HOSTS_MAX:,} hosts in all, 1 or more of each kind, got {kind}")
        inventories = {"VCPU": Inventory(total=cores), "MEMORY_MB": Inventory(total=ram)}
        for index in range(len(providers), len(providers) + count):
            name = f"host-{index}"
            providers.append(ProviderSpec(uuid=uuid_of("cospot", "host", name), name=name, inventories=inventories))
    return Fleet(
        providers=providers,
        hosts=[HostSpec(provider_uuid=root.uuid, host=root.name, node=root.name) for root in providers],
    )


def _build_stay(row: Row, request: Request) -> Stay:
    starts, ends = row.number("starttime"), row.number("endtime", may_be_infinite=True)
    if ends < starts:
        raise row.error("endtime", f"{ends:.15g} is before starttime {starts:.15g}")
    return Stay(request, starts * _DAY_S, ends * _DAY_S)
