"""From flavor and image to the NUMA cells of an instance."""

import re

from roost.errors import BadRequest
from roost.model.devices.topology import CpuPolicy, InstanceCell, InstanceTopology, NetworkNeeds, PageSize
from roost.model.names import AMOUNT_MAX
from roost.model.request import Request
from roost.model.switches import is_true
from roost.scheduler.framework.hw_settings import is_enabled, read_values
from roost.scheduler.query.processors import (
    cpu_policy,
    emulator_policy,
    find_dedicated_cpus,
    parse_cpu_mask,
    realtime_cpus,
    thread_policy,
)

_PROCESSORS = re.compile(r"resources\d*:(VCPU|PCPU)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(?:(K|Ki|M|Mi|G|Gi|T|Ti)?(B|b|bit))?")
_UNITS_KB = {"": 1 / 1024, "K": 1, "M": 1024, "G": 1024**2, "T": 1024**3}
_NODES_MAX = 64


def topology_of(request: Request) -> InstanceTopology | None:
    """Return the NUMA cells of an instance; None: it has no NUMA topology.

    An instance has cells if flavor or image sets their number, a page size, persistent memory or dedicated processors;
    the default is one cell. Processors and memory are divided evenly, or as set for each cell.

    Raises:
        BadRequest: a value is invalid, values are incompatible, or flavor and image contradict each other.

    Source:
        nova/virt/hardware.py, numa_get_constraints.
    """
    policy = _policy(request)
    pages = _page_size(request)
    _check(request, policy, pages)
    count = _node_count(request)
    is_required = pages is not None or policy in ("dedicated", "mixed") or _has_persistent_memory(request)
    if count is None and not is_required:
        return None
    threads = thread_policy(request)
    dedicated = _dedicated_cpus(request, policy)
    cells = [
        InstanceCell(
            id=number,
            cpus=cpus - dedicated,
            pcpus=cpus & dedicated,
            memory_mb=memory_mb,
            page_size=pages,
            policy=policy,
            threads=threads,
        )
        for number, (cpus, memory_mb) in enumerate(_nodes(request, count or 1))
    ]
    return InstanceTopology(cells=tuple(cells), isolates_emulator=emulator_policy(request) == "isolate")


def networks_of(request: Request) -> NetworkNeeds | None:
    """Return the networks whose cards must be near an instance; None: no network requires it."""
    physnets = frozenset(network.physnet for network in request.networks if network.physnet)
    is_tunneled = any(network.is_tunneled for network in request.networks)
    return NetworkNeeds(physnets=physnets, is_tunneled=is_tunneled) if physnets or is_tunneled else None


def _policy(request: Request) -> CpuPolicy | None:
    """Return the processor policy, explicit or derived from amounts in extra specs."""
    policy = cpu_policy(request)
    amounts = {"VCPU": 0, "PCPU": 0}
    for key, value in request.flavor.extra_specs.items():
        match = _PROCESSORS.fullmatch(key)
        if match is not None and re.fullmatch(r"-?[0-9]{1,18}", value):
            amounts[match[1]] += int(value)
    if not any(amounts.values()):
        return policy
    if policy is not None:
        raise BadRequest("extra specs resources:VCPU and resources:PCPU cannot be combined with hw:cpu_policy")
    if all(amounts.values()):
        raise BadRequest("extra specs resources:VCPU and resources:PCPU cannot be combined")
    if not amounts["PCPU"]:
        return "shared"
    required = request.flavor.vcpus + (emulator_policy(request) == "isolate")
    if amounts["PCPU"] != required:
        raise BadRequest(f"extra spec resources:PCPU must be {required} for this flavor, got {amounts['PCPU']}")
    return "dedicated"


def _check(request: Request, policy: CpuPolicy | None, pages: PageSize | None) -> None:
    """Refuse incompatible settings."""
    specs = request.flavor.extra_specs
    is_pinned = policy in ("dedicated", "mixed")
    is_realtime = is_true(specs.get("hw:cpu_realtime"))
    if not is_pinned:
        for name, is_set in (
            ("cpu_thread_policy", thread_policy(request) is not None),
            ("emulator_threads_policy=isolate", emulator_policy(request) == "isolate"),
            ("cpu_realtime", is_realtime),
        ):
            if is_set:
                raise BadRequest(f"hw:{name} needs dedicated processors: hw:cpu_policy=dedicated or mixed")
    if is_realtime:
        realtime_cpus(request)
    has_mask = bool(specs.get("hw:cpu_dedicated_mask"))
    if has_mask and policy != "mixed":
        raise BadRequest("extra spec hw:cpu_dedicated_mask needs hw:cpu_policy=mixed")
    if policy == "mixed" and has_mask == is_realtime:
        raise BadRequest("hw:cpu_policy=mixed needs either hw:cpu_dedicated_mask or hw:cpu_realtime, and not both")
    if is_enabled(request, "locked_memory") and pages is None:
        raise BadRequest("hw:locked_memory needs hw:mem_page_size")


def _page_size(request: Request) -> PageSize | None:
    flavor, image = read_values(request, "mem_page_size")
    size = _read_page_size(flavor)
    if not image:
        return size
    if size not in ("large", "any"):
        raise BadRequest(
            f"image property hw_mem_page_size={image} needs extra spec hw:mem_page_size=large or any, not {flavor}"
        )
    return _read_page_size(image)


def _read_page_size(text: str | None) -> PageSize | None:
    """Parse a page size, in KiB, or a class of sizes; return None for an empty text and 0."""
    if not text:
        return None
    if text in ("small", "large", "any"):
        return text  # type: ignore[return-value]  # one of the three
    match = _SIZE.fullmatch(text) if len(text) <= 20 and text.isascii() else None
    if match is None or (match[3] is None and "." in text):
        raise BadRequest(
            f"{text[:70]!r} is not a valid size of memory pages for hw:mem_page_size: "
            "small, large, any, a number of KiB, or a size such as 2MB or 1GiB"
        )
    if match[3] is None:
        size = int(text)
    else:
        units = _UNITS_KB[(match[2] or "").removesuffix("i")]
        size = int(float(match[1]) * units / (1 if match[3] == "B" else 8))
    if size > AMOUNT_MAX:
        raise BadRequest(f"memory pages of {text[:70]} are larger than {AMOUNT_MAX} KiB")
    return size or None


def _node_count(request: Request) -> int | None:
    flavor, image = read_values(request, "numa_nodes")
    if flavor and image:
        raise BadRequest("image property hw_numa_nodes may not replace extra spec hw:numa_nodes")
    text = flavor or image
    if not text:
        return None
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise BadRequest(f"hw:numa_nodes must be a whole number above 0, got {text[:70]!r}")
    if int(text) > _NODES_MAX:
        raise BadRequest(f"hw:numa_nodes must be {_NODES_MAX} or less, got {text}")
    return int(text)


def _has_persistent_memory(request: Request) -> bool:
    return any(label.strip() for label in request.flavor.extra_specs.get("hw:pmem", "").split(","))


def _dedicated_cpus(request: Request, policy: CpuPolicy | None) -> frozenset[int]:
    """Return the virtual CPUs with dedicated processors."""
    if policy == "dedicated":
        return frozenset(range(request.flavor.vcpus))
    return find_dedicated_cpus(request) if policy == "mixed" else frozenset()


def _nodes(request: Request, count: int) -> list[tuple[frozenset[int], int]]:
    """Return the contents of each node: (virtual CPUs, MiB)."""
    flavor = request.flavor
    if _node_values(request, 0) != (None, None):
        return _explicit_nodes(request, count)
    if flavor.vcpus % count or flavor.memory_mb % count:
        raise BadRequest(
            f"{flavor.vcpus} processors and {flavor.memory_mb} MiB cannot be divided evenly among {count} NUMA nodes: "
            "set hw:numa_cpus.N and hw:numa_mem.N for each node"
        )
    per_node = flavor.vcpus // count
    return [(frozenset(range(at * per_node, (at + 1) * per_node)), flavor.memory_mb // count) for at in range(count)]


def _node_values(request: Request, number: int) -> tuple[str | None, str | None]:
    """Return the explicit values of a node, as text: (virtual CPUs, MiB)."""
    values: list[str | None] = []
    for name in (f"numa_cpus.{number}", f"numa_mem.{number}"):
        flavor, image = read_values(request, name)
        if flavor is not None and image is not None:
            raise BadRequest(f"image property hw_{name} may not replace extra spec hw:{name}")
        values.append(image if flavor is None else flavor)
    return values[0], values[1]


def _explicit_nodes(request: Request, count: int) -> list[tuple[frozenset[int], int]]:
    """Return the explicit contents of each node in flavor or image."""
    flavor = request.flavor
    all_cpus = frozenset(range(flavor.vcpus))
    nodes: list[tuple[frozenset[int], int]] = []
    assigned: set[int] = set()
    for number in range(count):
        cpus, memory_mb = _explicit_node(request, number, all_cpus=all_cpus)
        if cpus & assigned:
            raise BadRequest(f"processor {min(cpus & assigned)} is assigned to two NUMA nodes")
        assigned |= cpus
        nodes.append((cpus, memory_mb))
    if _node_values(request, count) != (None, None):
        raise BadRequest(f"processors or memory are assigned to NUMA node {count}, but the nodes are 0 to {count - 1}")
    if assigned != all_cpus:
        raise BadRequest(f"processor {min(all_cpus - assigned)} is assigned to no NUMA node")
    total_mb = sum(memory_mb for _, memory_mb in nodes)
    if total_mb != flavor.memory_mb:
        raise BadRequest(f"the NUMA nodes have {total_mb} MiB in total, the flavor has {flavor.memory_mb}")
    return nodes


def _explicit_node(request: Request, number: int, *, all_cpus: frozenset[int]) -> tuple[frozenset[int], int]:
    cpus_text, memory_text = _node_values(request, number)
    if cpus_text is None or memory_text is None:
        raise BadRequest(f"NUMA node {number} needs both hw:numa_cpus.{number} and hw:numa_mem.{number}")
    cpus = parse_cpu_mask(cpus_text, all_cpus=all_cpus)
    if not cpus <= all_cpus:
        raise BadRequest(f"hw:numa_cpus.{number} names processor {max(cpus)}, the flavor has 0 to {len(all_cpus) - 1}")
    if not re.fullmatch(r"[0-9]{1,18}", memory_text):
        raise BadRequest(f"hw:numa_mem.{number} must be a whole number of MiB, got {memory_text[:70]!r}")
    return cpus, int(memory_text)
