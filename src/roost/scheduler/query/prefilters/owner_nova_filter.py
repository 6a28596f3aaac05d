"""Require hosts that belong to Nova."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext

_OWNED = frozenset({"OWNER_NOVA"})


def owner_nova_filter(context: PrefilterContext) -> Effect:
    """Require ``OWNER_NOVA`` of hosts and PCI devices, once every host has this trait.

    Source:
        nova/scheduler/request_filter.py, owner_nova_filter. Nova checks service versions instead: new services
        report the trait.
    """
    return Effect(root_required=_OWNED, device_required=_OWNED) if context.are_hosts_owned else NOTHING
