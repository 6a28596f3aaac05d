"""numa_topology: hosts whose memory nodes hold those of the instance."""

from collections.abc import Hashable
from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.types import AnyArray, Mask
from roost.errors import BadRequest
from roost.model.allocation import Mappings
from roost.model.decision import Limits
from roost.model.host import HostFacts
from roost.model.request import Request
from roost.scheduler.hosts import HostView
from roost.scheduler.numa.bounds import may_fit, tell_bounds
from roost.scheduler.numa.cell import Overcommit
from roost.scheduler.numa.constraints import networks_of, topology_of
from roost.scheduler.numa.instance import InstanceTopology, PlacedCell
from roost.scheduler.numa.placing import place
from roost.scheduler.pci.pools import UNMAPPED
from roost.scheduler.rules import NoOptions, Reads
from roost.scheduler.spec import Spec

# Verdicts on hosts that are alike, kept while they are asked for; a host and its verdict are some KiB.
_KEPT = 2**14
_encode = msgspec.msgpack.Encoder(order="sorted").encode


class NumaTopology:
    """Keep hosts on whose memory nodes those of the instance fit, as flavor and image ask for them.

    Hosts with too few cells, processors or pages are told apart by columns. What is left is fitted exactly, once for
    hosts that are alike.

    Source:
        nova/scheduler/filters/numa_topology_filter.py, NUMATopologyFilter.
    """

    name: ClassVar = "numa_topology"
    nova_name: ClassVar = "NUMATopologyFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: NoOptions) -> None:
        self._options = options
        self._verdicts: dict[Hashable, bool] = {}
        self._asked: tuple[Request | None, InstanceTopology | None] = (None, None)

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again: hosts report themselves what of their cells is in use.

        Where Placement is asked for devices, claims change by which providers a host holds them.
        """
        return "use" if spec.ways and spec.pci_requests else "facts"

    def is_consumed(self, spec: Spec) -> bool:
        """Say yes: instances take processors, pages and devices."""
        return True

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: where a topology is asked for, or would be if it could be meant."""
        try:
            return self._wanted(spec) is not None
        except BadRequest:
            return True

    def check(self, spec: Spec) -> None:
        """Refuse a flavor and an image that do not go together.

        Raises:
            BadRequest: see ``topology_of``.
        """
        self._wanted(spec)

    def looks_at(self, spec: Spec) -> Hashable:
        """Return what of the request a verdict depends on."""
        return self._wanted(spec), networks_of(spec.request), _devices(spec)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with cells for all of the instance; those without any are refused."""
        wanted = self._wanted(spec)
        if wanted is None:
            return np.ones(len(hosts), dtype=np.bool_)
        kept = may_fit(hosts, wanted)
        left = np.flatnonzero(kept)
        if spec.pci_requests and hosts.has_ways(spec.ways):
            for position in left.tolist():
                ways = hosts.mappings(position, spec.ways)
                kept[position] = any(self.accepts(hosts, spec, at=position, mappings=mappings) for mappings in ways)
            return kept
        looked_at = self.looks_at(spec)
        _, first, inverse = np.unique(_kinds(hosts)[left], return_index=True, return_inverse=True)
        verdicts = [self._fits(hosts, position, looked_at, spec=spec) for position in left[first].tolist()]
        kept[left] = np.array(verdicts, dtype=np.bool_)[inverse]
        return kept

    def accepts(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        """Say whether a host has cells with the devices near to them that some providers are to give."""
        wanted = self._wanted(spec)
        return wanted is None or _place(hosts, at, wanted, spec=spec, mappings=mappings) is not None

    def limits(self, hosts: HostView, spec: Spec) -> list[Limits]:
        """Return how much of its cells each host may give out, and which networks instances are near to."""
        if self._wanted(spec) is None:
            return [{} for _ in range(len(hosts))]
        needs = networks_of(spec.request)
        networks: dict[str, dict[str, bool | list[str]]] = {}
        if needs is not None:
            networks["network_metadata"] = {"physnets": sorted(needs.physnets), "tunneled": needs.is_tunneled}
        return [
            {}
            if facts.numa is None
            else {"numa_topology": {"cpu_allocation_ratio": cpu, "ram_allocation_ratio": memory, **networks}}
            for facts, (cpu, memory) in zip(hosts.all_facts(), _overcommit(hosts).tolist(), strict=True)
        ]

    def tell(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say what the cells of each host lack, where that can be said of one of them alone."""
        wanted = self._wanted(spec)
        return [""] * len(hosts) if wanted is None else tell_bounds(hosts, wanted)

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts lack."""
        wanted = self._wanted(spec)
        count = 0 if wanted is None else len(wanted.cells)
        what = f"{count:,} NUMA cells" if count > 1 else "a NUMA cell"
        return f"lack room for {what} as the flavor wants {'them' if count > 1 else 'it'}"

    def _wanted(self, spec: Spec) -> InstanceTopology | None:
        if self._asked[0] is not spec.request:
            self._asked = (spec.request, topology_of(spec.request))
        return self._asked[1]

    def _fits(self, hosts: HostView, position: int, looked_at: Hashable, *, spec: Spec) -> bool:
        facts, wanted = hosts.facts(position), self._wanted(spec)
        assert wanted is not None
        pools = _encode(facts.pci_pools) if spec.pci_requests else b""
        key = (looked_at, _overcommit(hosts)[position].item(), facts.numa, pools)
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(self._verdicts) >= _KEPT:
                self._verdicts.clear()
            verdict = self._verdicts[key] = _place(hosts, position, wanted, spec=spec) is not None
        return verdict


def _place(
    hosts: HostView, position: int, wanted: InstanceTopology, *, spec: Spec, mappings: Mappings = UNMAPPED
) -> tuple[PlacedCell, ...] | None:  # fmt: skip
    """Return on which cells of a host an instance would be, near to its devices; None where it does not fit."""
    cpu, memory = _overcommit(hosts)[position].item()
    return place(
        hosts.facts(position), wanted, overcommit=Overcommit(cpu=cpu, memory=memory), needs=networks_of(spec.request),
        requests=spec.pci_requests, mappings=mappings,
    )  # fmt: skip


def _devices(spec: Spec) -> bytes:
    """Return all that a verdict depends on of the devices that are asked for."""
    return _encode([(each.count, each.alternatives, each.source, each.numa_policy) for each in spec.pci_requests])


def _kinds(hosts: HostView) -> AnyArray:
    """Return a number for each host, the same for those with the same cells, devices and overcommit: shape (hosts,)."""
    told = hosts.kinds(NumaTopology.name, _told).codes
    found, numbers = np.unique(_overcommit(hosts), return_inverse=True)
    kinds: AnyArray = told * len(found) + numbers
    return kinds


def _told(facts: HostFacts) -> tuple[object, ...]:
    return facts.numa, facts.pci_pools


def _overcommit(hosts: HostView) -> AnyArray:
    """Return how often shared processors and memory of each host may be given out: shape (hosts,), of two fields."""
    return hosts.remembered(("numa overcommit", hosts.epoch), _overcommit_anew)


def _overcommit_anew(hosts: HostView) -> AnyArray:
    found = np.empty(len(hosts), dtype=[("cpu", np.float64), ("memory", np.float64)])
    found["cpu"], found["memory"] = hosts.column("cpu_allocation_ratio"), hosts.allocation_ratio("MEMORY_MB")
    return found
