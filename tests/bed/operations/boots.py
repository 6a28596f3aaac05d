"""Operations that create servers, one after the other."""

from tests.bed.conf_files import COMPUTES, GADGET, GOLD
from tests.bed.records import Outcome, add_amounts
from tests.bed.session import Session

# Virtual CPUs, memory, disk and extra specs by name.
FLAVORS: dict[str, tuple[int, int, int, dict[str, str]]] = {
    "tiny": (1, 64, 1, {}),
    "small": (2, 256, 2, {}),
    "big": (8, 1024, 8, {}),
    "huge": (999, 64, 1, {}),
    "gold": (1, 64, 1, {f"trait:{GOLD}": "required"}),
    "no-gold": (1, 64, 1, {f"trait:{GOLD}": "forbidden"}),
    "gadgets": (1, 64, 1, {f"resources:{GADGET}": "2"}),
    "gadget": (1, 64, 1, {f"resources:{GADGET}": "1"}),
    "magic": (1, 64, 1, {"resources:CUSTOM_MAGIC": "1"}),
    "grouped": (
        1,
        64,
        1,
        {"resources_M:CUSTOM_MAGIC": "2", "trait_M:OWNER_NOVA": "required", "group_policy": "isolate"},
    ),
    "no-cpu": (1, 64, 1, {"resources:VCPU": "0", f"resources:{GADGET}": "1"}),
    "light": (1, 64, 1, {"resources:VCPU": "0"}),
    "sgx": (1, 64, 1, {"trait:HW_CPU_X86_SGX": "required"}),
    "dedicated": (2, 64, 1, {"hw:cpu_policy": "dedicated"}),
    "isolated": (1, 64, 1, {"trait:CUSTOM_ISOLATED": "required"}),
    "ssd": (1, 64, 1, {"aggregate_instance_extra_specs:ssd": "true"}),
}


def list_providers(session: Session) -> dict[str, Outcome]:
    """Read all providers before the first server."""
    outcomes = {}
    for name, uuid in session.providers().items():
        path = f"/resource_providers/{uuid}"
        facts = {
            "inventories": session.placement("GET", f"{path}/inventories")["inventories"],
            "traits": sorted(session.placement("GET", f"{path}/traits")["traits"]),
            "aggregates": len(session.placement("GET", f"{path}/aggregates")["aggregates"]),
        }
        outcomes[name] = Outcome(facts=facts)
    return outcomes


def create_flavors(session: Session) -> dict[str, Outcome]:
    """Create the flavors."""
    for name, (vcpus, memory_mib, disk_gib, specs) in FLAVORS.items():
        body = {"flavor": {"name": name, "vcpus": vcpus, "ram": memory_mib, "disk": disk_gib}}
        number = session.nova("POST", "/flavors", body)["flavor"]["id"]
        session.flavors[name] = number
        if specs:
            session.nova("POST", f"/flavors/{number}/os-extra_specs", {"extra_specs": specs})
    return {"flavors": Outcome(facts=sorted(session.flavors))}


def create_aggregates(session: Session) -> dict[str, Outcome]:
    """Create an availability zone, and an aggregate with metadata."""
    create_aggregate(session, "zone-a", ["cmp1", "cmp2"], zone="zone-a")
    create_aggregate(session, "ssd", ["cmp2"], metadata={"ssd": "true"})
    return {name: Outcome(facts=each.facts["aggregates"]) for name, each in list_providers(session).items()}


def create_aggregate(
    session: Session, name: str, hosts: list[str], *, metadata: dict[str, str] | None = None, zone: str | None = None
) -> int:
    """Create an aggregate; return its identifier."""
    body = {"aggregate": {"name": name, "availability_zone": zone}}
    number = int(session.nova("POST", "/os-aggregates", body)["aggregate"]["id"])
    for host in hosts:
        session.nova("POST", f"/os-aggregates/{number}/action", {"add_host": {"host": host}})
    if metadata:
        session.nova("POST", f"/os-aggregates/{number}/action", {"set_metadata": {"metadata": metadata}})
    return number


def boot_one(session: Session) -> dict[str, Outcome]:
    """Boot one server."""
    return {"one": session.boot("one")}


def boot_by_flavors(session: Session) -> dict[str, Outcome]:
    """Boot servers with traits, classes, groups of requests, and metadata of aggregates."""
    names = ("gold", "no-gold", "gadgets", "magic", "grouped", "no-cpu", "ssd")
    return {name: session.boot(f"flavor-{name}", name) for name in names}


def boot_on_hosts(session: Session) -> dict[str, Outcome]:
    """Boot servers on hosts and zones that the user names."""
    return {
        "zone nova, host": session.boot("force-1", availability_zone="nova:cmp3", is_host_free=False),
        "zone-a, host": session.boot("force-2", availability_zone="zone-a:cmp2", is_host_free=False),
        "host": session.boot("force-3", host="cmp2", is_host_free=False),
        "node": session.boot("force-4", hypervisor_hostname="cmp1", is_host_free=False),
        "host without the trait": session.boot("force-5", "gold", host="cmp1"),
        "zone": session.boot("force-6", availability_zone="zone-a"),
        "unknown host": session.boot("force-7", host="cmp9"),
        "unknown zone": session.boot("force-8", availability_zone="zone-z"),
        "host of another zone": session.boot("force-9", availability_zone="zone-a", host="cmp3"),
    }


def refuse(session: Session) -> dict[str, Outcome]:
    """Boot servers that fit on no host."""
    return {name: session.boot(f"refuse-{name}", name) for name in ("huge", "sgx")}


def boot_dedicated(session: Session) -> dict[str, Outcome]:
    """Boot a server with dedicated processors, which no host has."""
    return {"dedicated": session.boot("dedicated", "dedicated")}


def boot_in_isolation(session: Session) -> dict[str, Outcome]:
    """Boot servers beside an aggregate that only some flavors may use."""
    trait = "CUSTOM_ISOLATED"
    path = f"/resource_providers/{session.providers()['cmp3']}/traits"
    session.placement("PUT", f"/traits/{trait}")
    before = session.placement("GET", path)
    session.placement("PUT", path, before | {"traits": [*before["traits"], trait]})
    number = create_aggregate(session, "isolated", ["cmp3"], metadata={f"trait:{trait}": "required"})
    outcomes = {"isolated": session.boot("isolated", "isolated", is_host_free=False)}
    for each in range(3):
        outcome = session.boot(f"not-isolated-{each}")
        outcomes[f"other {each}"] = Outcome(facts={"is outside": outcome.host != "cmp3"}) if outcome.host else outcome
    session.nova("POST", f"/os-aggregates/{number}/action", {"remove_host": {"host": "cmp3"}})
    session.nova("DELETE", f"/os-aggregates/{number}")
    return outcomes


def count_quota(session: Session) -> dict[str, Outcome]:
    """Read the usage of the project."""
    found = session.nova("GET", f"/os-quota-sets/{session.api.project}/detail")["quota_set"]
    return {"quota": Outcome(facts={name: found[name]["in_use"] for name in ("instances", "cores", "ram")})}


def list_servers(session: Session) -> dict[str, Outcome]:
    """Read all servers, before the operations with many servers at once."""
    outcomes = {}
    for name in sorted(session.servers):
        seen = session.observe(name)
        # The choices were compared at the time of each operation.
        outcomes[name] = Outcome(status=seen.status, fault=seen.fault, holdings=seen.holdings)
    return outcomes


def sum_usages(session: Session) -> dict[str, Outcome]:
    """Read the usages of all hosts, before the operations with many servers at once."""
    usages = session.usages()
    parts = {
        "hosts": [amounts for name, amounts in usages.items() if name in COMPUTES],
        "parts of hosts": [amounts for name, amounts in usages.items() if name not in COMPUTES],
    }
    return {name: Outcome(facts=add_amounts(each)) for name, each in parts.items()}
