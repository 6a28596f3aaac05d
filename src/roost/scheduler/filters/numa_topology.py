"""numa_topology: hosts whose memory nodes hold those of the instance."""

from collections.abc import Hashable
from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.types import Mask
from roost.errors import BadRequest
from roost.model.decision import Limits
from roost.model.request import Request
from roost.scheduler.hosts import HostView
from roost.scheduler.numa.bounds import may_fit, tell_bounds
from roost.scheduler.numa.cell import Overcommit
from roost.scheduler.numa.constraints import networks_of, topology_of
from roost.scheduler.numa.fit import fit
from roost.scheduler.numa.instance import InstanceTopology, NetworkNeeds
from roost.scheduler.rules import NoOptions, Reads
from roost.scheduler.spec import Spec

# Verdicts on hosts that are alike, kept while they are asked for; a host and its verdict are some KiB.
_KEPT = 2**14


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
        """Say when a verdict has to be made again: hosts report themselves what of their cells is in use."""
        return "facts"

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
        return self._wanted(spec), networks_of(spec.request)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with cells for all of the instance; those without any are refused."""
        wanted = self._wanted(spec)
        if wanted is None:
            return np.ones(len(hosts), dtype=np.bool_)
        needs = networks_of(spec.request)
        kept = may_fit(hosts, wanted)
        overcommit = _ratios(hosts)
        for position in np.flatnonzero(kept).tolist():
            kept[position] = self._fits(hosts, position, wanted, needs=needs, overcommit=overcommit[position])
        return kept

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
            for facts, (cpu, memory) in zip(hosts.all_facts(), _ratios(hosts), strict=True)
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

    def _fits(
        self, hosts: HostView, position: int, wanted: InstanceTopology, *, needs: NetworkNeeds | None,
        overcommit: tuple[float, float],
    ) -> bool:  # fmt: skip
        host = hosts.facts(position).numa
        if host is None:
            return False
        key = (wanted, needs, overcommit, host)
        verdict = self._verdicts.get(key)
        if verdict is None:
            cpu, memory = overcommit
            found = fit(host, wanted, overcommit=Overcommit(cpu=cpu, memory=memory), needs=needs)
            if len(self._verdicts) >= _KEPT:
                self._verdicts.clear()
            verdict = self._verdicts[key] = found is not None
        return verdict


def _ratios(hosts: HostView) -> list[tuple[float, float]]:
    """Return the overcommit of shared processors and of memory of each host."""
    columns = (hosts.column("cpu_allocation_ratio"), hosts.allocation_ratio("MEMORY_MB"))
    return list(zip(*(column.tolist() for column in columns), strict=True))
