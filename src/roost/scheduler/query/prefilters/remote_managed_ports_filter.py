"""Require hosts with support for remote-managed ports."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext, require_root_traits


def remote_managed_ports_filter(context: PrefilterContext) -> Effect:
    """Require ``COMPUTE_REMOTE_MANAGED_PORTS`` if a network of the request has such a port.

    Source:
        nova/scheduler/request_filter.py, remote_managed_ports_filter.
    """
    is_remote = any(network.is_remote_managed for network in context.request.networks)
    return require_root_traits("COMPUTE_REMOTE_MANAGED_PORTS") if is_remote else NOTHING
