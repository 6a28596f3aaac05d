"""The hosts of a compaction: the first ones of a repeated pattern of kinds, or of the trace's own hosts."""

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from roost.errors import BadRequest
from roost.model.fleet import Departure, Fleet
from roost.model.provider import Inventory
from roost.model.request import Request
from roost.scheduler.query.device_demand import DemandCache
from roost.simulator.traces.cospot import build_fleet

HOST_SYNTAX = "CORESc/RAMm, as in 9600c/2600m, or COUNTxCORESc/RAMm"
_KIND = re.compile(r"(?:([0-9]{1,4})x)?([0-9]{1,10}c/[0-9]{1,10}m)")
_PATTERN_MAX = 1_000  # hosts


class Amounts(NamedTuple):
    """Processors and memory."""

    cpus: float
    memory_mb: float


def parse_pattern(hosts: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of a pattern of hosts, one for each host.

    >>> parse_pattern(["2x8c/64m", "4c/16m"])
    ('8c/64m', '8c/64m', '4c/16m')

    Raises:
        BadRequest: a kind is invalid, or the pattern is too long.
    """
    pattern: list[str] = []
    for text in hosts:
        match = _KIND.fullmatch(text.strip())
        if match is None:
            raise BadRequest(f"a host must be {HOST_SYNTAX}, got {text[:60]!r}")
        count = int(match[1] or 1)
        if not 1 <= count <= _PATTERN_MAX - len(pattern):
            raise BadRequest(f"a mix must have 1..{_PATTERN_MAX:,} hosts, 1 or more of each kind, got {text[:60]!r}")
        pattern += [match[2]] * count
    build_fleet(tuple(f"1x{kind}" for kind in pattern[:_PATTERN_MAX]) or ("1x1c/1m",))  # checks the amounts
    return tuple(pattern)


def build_hosts(own: Fleet, pattern: Sequence[str], count: int) -> Fleet:
    """Return a fleet of some hosts.

    Args:
        own: the fleet of the trace.
        pattern: kinds of hosts, repeated as often as necessary; empty: the first hosts of the trace.
        count: number of hosts; at most those of the trace, without a pattern.
    """
    if pattern:
        kinds = itertools.islice(itertools.cycle(pattern), count)
        return msgspec.structs.replace(build_fleet(tuple(f"1x{kind}" for kind in kinds)), groups=own.groups)
    hosts = own.hosts[:count]
    roots = {host.provider_uuid for host in hosts}
    left_out = {host.provider_uuid for host in own.hosts} - roots
    providers = []
    for provider in own.providers:  # Parents come before children.
        if provider.uuid in left_out or provider.parent_uuid in left_out:
            left_out.add(provider.uuid)
        else:
            providers.append(provider)
    return msgspec.structs.replace(own, hosts=hosts, providers=providers)


def host_amounts(fleet: Fleet) -> list[Amounts]:
    """Return the capacity of each host, with overcommit and without reserved amounts."""
    root_of: dict[str, str] = {}
    totals: dict[str, list[float]] = {}
    for provider in fleet.providers:
        root = provider.uuid if provider.parent_uuid is None else root_of[provider.parent_uuid]
        root_of[provider.uuid] = root
        amounts = totals.setdefault(root, [0.0, 0.0])
        for name, place in (("VCPU", 0), ("PCPU", 0), ("MEMORY_MB", 1)):
            if name in provider.inventories:
                amounts[place] += _capacity(provider.inventories[name])
    return [Amounts(*totals[host.provider_uuid]) for host in fleet.hosts]


def find_peak(acts: Sequence[Request | Departure]) -> Amounts:
    """Return the largest sums of processors and of memory at any time, if no request is refused."""
    find_demand = DemandCache("MEMORY_MB").find
    alive: dict[str, tuple[int, int]] = {}
    cpus = memory_mb = cpus_max = memory_max = 0
    for act in acts:
        if isinstance(act, Departure):
            gone = [alive.pop(uuid) for uuid in act.instance_uuids if uuid in alive]
            cpus -= sum(each[0] for each in gone)
            memory_mb -= sum(each[1] for each in gone)
            continue
        demand = find_demand(act)
        alive.update(dict.fromkeys(act.instance_uuids, (demand.cpus, demand.memory_mb)))
        cpus += demand.cpus * act.count
        memory_mb += demand.memory_mb * act.count
        cpus_max, memory_max = max(cpus_max, cpus), max(memory_max, memory_mb)
    return Amounts(cpus_max, memory_max)


def lower_bound(peak: Amounts, own: Fleet, pattern: Sequence[str]) -> int:
    """Return a number of hosts below which some request is refused, whatever the policy; at least 1.

    Without a pattern and with too few hosts in the trace, it is one more than these.
    """
    amounts = host_amounts(build_hosts(own, pattern, len(pattern)) if pattern else own)
    cpus, memory_mb = (list(itertools.accumulate(column)) for column in zip(*amounts, strict=True))
    rounds = 0
    if pattern:
        # All rounds of the pattern but the last one are needed entirely.
        rounds = max(0, math.ceil(max(peak.cpus / cpus[-1], peak.memory_mb / memory_mb[-1])) - 1)
    for at in range(len(amounts)):
        has_cpus = rounds * cpus[-1] + cpus[at] >= peak.cpus
        if has_cpus and rounds * memory_mb[-1] + memory_mb[at] >= peak.memory_mb:
            return rounds * len(amounts) + at + 1
    return (rounds + 1) * len(amounts) + 1


def _capacity(inventory: Inventory) -> int:
    return int((inventory.total - inventory.reserved) * inventory.allocation_ratio)
