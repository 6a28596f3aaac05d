"""Require hosts that belong to Nova."""

from roost.scheduler.query.prefilter import NOTHING, Effect, PrefilterContext

_OWNED = frozenset({"OWNER_NOVA"})


def owner_nova_filter(context: PrefilterContext) -> Effect:
    """Require ``OWNER_NOVA``, of PCI devices too, once every host has it.

    Source:
        nova/scheduler/request_filter.py, owner_nova_filter. It checks service versions instead: new services report
        the trait.
    """
    return Effect(root_required=_OWNED, device_required=_OWNED) if context.are_hosts_owned else NOTHING
