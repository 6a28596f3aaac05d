"""pci_passthrough: hosts with the PCI devices that are asked for."""

from collections.abc import Hashable
from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.pci.pools import bare_pools, is_match, supports
from roost.model.allocation import Mappings
from roost.model.devices.pci import PciRequest
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec

# By these devices are counted ahead; whatever else is wanted of them is judged exactly.
_COUNTABLE = ("vendor_id", "product_id", "dev_type")


class PciPassthrough:
    """Keep hosts whose free PCI devices are those of all requests of the instance.

    Devices are facts: what a host reports as free is free until it reports anew, but for what instances of the same
    request take. Where Placement was asked for them,
    a host is kept if it has the devices of one of the ways in which it could hold the request.

    Source:
        nova/scheduler/filters/pci_passthrough_filter.py.
    """

    name: ClassVar = "pci_passthrough"
    nova_name: ClassVar = "PciPassthroughFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar = NoOptions
    run_filter_once_per_request: ClassVar = False
    run_on_rebuild: ClassVar = False

    def __init__(self, options: NoOptions) -> None:
        self._options = options

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again: at each claim where that changes by which providers it holds."""
        return "use" if spec.queries else "facts"

    def changes_per_instance(self, spec: Spec) -> bool:
        """Say yes: instances take devices."""
        return True

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: for requests that want devices."""
        return bool(spec.pci_requests)

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return what of the request a verdict depends on: what is wanted of devices, whoever wants them."""
        return msgspec.msgpack.encode(
            [(each.count, each.alternatives, each.source) for each in spec.pci_requests], order="sorted"
        )

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with the devices."""
        if hosts.has_mappings(spec.queries):
            kept: Mask = np.ones(len(hosts), dtype=np.bool_)
            for request in spec.pci_requests:
                kept &= _free_devices(hosts, request) >= request.count
            for at in np.flatnonzero(kept).tolist():
                ways = hosts.mappings(at, spec.queries)
                kept[at] = any(self.accepts(hosts, spec, at=at, mappings=mappings) for mappings in ways)
            return kept
        # Hosts that say the same of their pools are judged together.
        pools, codes = hosts.kinds(PciPassthrough.name, bare_pools)
        kinds, inverse = np.unique(codes, return_inverse=True)
        verdicts = [supports(pools[kind], spec.pci_requests) for kind in kinds.tolist()]
        mask: Mask = np.array(verdicts, dtype=np.bool_)[inverse]
        return mask

    def accepts(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        """Say whether a host has the devices where some providers are to give them."""
        return supports(hosts.facts(at).pci_pools, spec.pci_requests, mappings=mappings)

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say of each host which of the requests it has too few devices for; empty where it is their sum, or more."""
        reasons = [""] * len(hosts)
        for request in reversed(spec.pci_requests):
            free = _free_devices(hosts, request)
            for at in np.flatnonzero(free < request.count).tolist():
                reasons[at] = f"has {free.item(at) or 'none'} of {request.told()}"
        return reasons

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts lack."""
        return f"lack free PCI devices: {', '.join(request.told() for request in spec.pci_requests)}"


def _free_devices(hosts: HostView, request: PciRequest) -> Amounts:
    """Return how many devices each host has that may do for a request, at least: int64, shape (hosts,)."""
    free: Amounts = np.zeros(len(hosts), dtype=np.int64)
    for wanted in request.alternatives:
        countable = {name: wanted[name] for name in _COUNTABLE if name in wanted}
        pools_by_kind, codes = hosts.kinds(PciPassthrough.name, bare_pools)
        counts = [sum(pool.count for pool in pools if is_match(pool, countable)) for pools in pools_by_kind]
        free += np.array(counts, dtype=np.int64)[codes]
    return free
