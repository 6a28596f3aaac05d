"""pci: free PCI devices."""

from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np

from roost.engine.columns.types import Scores
from roost.scheduler.framework.base_rule import BaseWeigher
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec

_DEVICES_MAX = 99  # upper bound on the devices that count
_NONE = 100.0


class PciOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``pci``."""

    pci_weight_multiplier: Annotated[
        float, msgspec.Meta(ge=0.0, description="Weight of having few free PCI devices.")
    ] = 1.0


class Pci(BaseWeigher[PciOptions]):
    """Prefer hosts without PCI devices, then hosts with the fewest free devices, for every request.

    Hosts without devices cannot serve a request for devices, so the request gets the host with the fewest free devices.
    All other requests avoid hosts with devices.

    Source:
        nova/scheduler/weights/pci.py.
    """

    nova_name = "PCIWeigher"
    options = PciOptions
    multiplier_option = "pci_weight_multiplier"
    reads_facts_only: ClassVar[Literal[True]] = True

    def changes_per_instance(self, spec: Spec) -> bool:
        """Return whether the instances take devices."""
        return bool(spec.pci_requests)

    def raw(self, hosts: HostView, spec: Spec) -> Scores:
        """Return 100 minus the free devices, of which at most 99 count."""
        return hosts.memoize("pci devices", _few_devices)


def _few_devices(hosts: HostView) -> Scores:
    free = [sum(pool.count for pool in facts.pci_pools) for facts in hosts.all_facts()]
    return _NONE - np.minimum(np.array(free, dtype=np.float64), _DEVICES_MAX)
