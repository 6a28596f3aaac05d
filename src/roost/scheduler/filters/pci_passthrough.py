"""pci_passthrough: hosts with the requested PCI devices."""

from collections.abc import Hashable

import msgspec
import numpy as np

from roost.engine.columns.types import Amounts, Mask
from roost.engine.pci.pools import bare_pools, is_match, supports
from roost.model.allocation import Mappings
from roost.model.devices.pci import PciRequest
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec

# Properties for a quick upper bound on free devices; the exact check reads all properties.
_COUNTABLE = ("vendor_id", "product_id", "dev_type")


class PciPassthrough(BaseFilter[NoOptions]):
    """Keep hosts whose free PCI devices serve all device requests of the instance.

    Free devices are facts: they stay as reported, except for devices taken by earlier instances of the same request.
    If Placement allocates the devices, at least one candidate on the host must provide them.

    Source:
        nova/scheduler/filters/pci_passthrough_filter.py.
    """

    nova_name = "PciPassthroughFilter"

    def reads(self, spec: Spec) -> Reads:
        """Return "use" if claims change which providers can serve the devices, else "facts"."""
        return "use" if spec.queries else "facts"

    def changes_per_instance(self, spec: Spec) -> bool:
        """Return True: instances take devices."""
        return True

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has device requests."""
        return bool(spec.pci_requests)

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: count, alternatives and source of each device request."""
        return msgspec.msgpack.encode(
            [(request.count, request.alternatives, request.source) for request in spec.pci_requests], order="sorted"
        )

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with enough matching devices."""
        if hosts.has_mappings(spec.queries):
            mask: Mask = np.ones(len(hosts), dtype=np.bool_)
            for request in spec.pci_requests:
                mask &= _free_devices(hosts, request) >= request.count
            for at in np.flatnonzero(mask).tolist():
                candidates = hosts.mappings(at, spec.queries)
                mask[at] = any(self.accepts(hosts, spec, at=at, mappings=mappings) for mappings in candidates)
            return mask
        # Hosts with equal pools are judged together.
        pools, codes = hosts.distinct_values(PciPassthrough.name, bare_pools)
        present, inverse = np.unique(codes, return_inverse=True)
        verdicts = [supports(pools[code], spec.pci_requests) for code in present.tolist()]
        verdict: Mask = np.array(verdicts, dtype=np.bool_)[inverse]
        return verdict

    def accepts(self, hosts: HostView, spec: Spec, *, at: int, mappings: Mappings) -> bool:
        """Return whether these providers have the devices on the host."""
        return supports(hosts.facts(at).pci_pools, spec.pci_requests, mappings=mappings)

    def host_reasons(self, hosts: HostView, spec: Spec) -> list[str]:
        """Return the first request with too few devices on each host; empty if each request alone has enough."""
        reasons = [""] * len(hosts)
        for request in reversed(spec.pci_requests):
            free = _free_devices(hosts, request)
            for at in np.flatnonzero(free < request.count).tolist():
                reasons[at] = f"has {free.item(at) or 'none'} of {request.describe()}"
        return reasons

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        return f"lack free PCI devices: {', '.join(request.describe() for request in spec.pci_requests)}"


def _free_devices(hosts: HostView, request: PciRequest) -> Amounts:
    """Return an upper bound on the free devices for a request on each host: int64, shape (hosts,)."""
    free: Amounts = np.zeros(len(hosts), dtype=np.int64)
    for traits in request.alternatives:
        countable = {name: traits[name] for name in _COUNTABLE if name in traits}
        pools_by_code, codes = hosts.distinct_values(PciPassthrough.name, bare_pools)
        counts = [sum(pool.count for pool in pools if is_match(pool, countable)) for pools in pools_by_code]
        free += np.array(counts, dtype=np.int64)[codes]
    return free
