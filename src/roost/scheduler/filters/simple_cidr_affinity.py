"""simple_cidr_affinity: hosts in a given network."""

from collections.abc import Hashable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import numpy as np

from roost.engine.columns.types import Mask
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec


class SimpleCidrAffinity(BaseFilter[NoOptions]):
    """Keep hosts with an address in the network of the hints ``build_near_host_ip`` and ``cidr`` (default ``/24``).

    Source:
        nova/scheduler/filters/affinity_filter.py, SimpleCIDRAffinityFilter.
    """

    nova_name = "SimpleCIDRAffinityFilter"
    hints = ("build_near_host_ip", "cidr")
    run_filter_once_per_request = True

    def reads(self, spec: Spec) -> Reads:
        """Return which changes invalidate a verdict."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Return whether the request has the hint ``build_near_host_ip``."""
        return bool(spec.hint("build_near_host_ip"))

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return the verdict key: the two hints."""
        return _hints(spec)

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts with an address in the network; reject all hosts if the hints name no valid network."""
        network = _network(spec)
        verdicts: dict[str, bool] = {}
        mask: list[bool] = []
        for facts in hosts.all_facts():
            verdict = verdicts.get(facts.host_ip)
            if verdict is None:
                verdict = verdicts[facts.host_ip] = network is not None and _is_in(facts.host_ip, network)
            mask.append(verdict)
        return np.array(mask, dtype=np.bool_)

    def reason(self, spec: Spec) -> str:
        """Describe the rejected hosts."""
        address, length = _hints(spec)
        if _network(spec) is None:
            return f"cannot be near {address!r}, because {address + length!r} is not a network"
        return f"have no address in {address}{length}"


def _hints(spec: Spec) -> tuple[str, str]:
    return spec.hint("build_near_host_ip") or "", spec.hint("cidr", "/24") or ""


def _network(spec: Spec) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network("".join(_hints(spec)), strict=False)
    except ValueError:
        return None


def _is_in(address: str, network: IPv4Network | IPv6Network) -> bool:
    try:
        return ip_address(address) in network
    except ValueError:
        return False
