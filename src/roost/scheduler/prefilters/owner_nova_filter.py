"""Go to hosts that belong to Nova."""

from roost.scheduler.prefiltering import NOTHING, Asked, Effect, root_traits


def owner_nova_filter(asked: Asked) -> Effect:
    """Require ``OWNER_NOVA`` once every host has it.

    Source:
        nova/scheduler/request_filter.py, owner_nova_filter, which looks at the versions of the services: those that
        are new enough report the trait.
    """
    return root_traits("OWNER_NOVA") if asked.are_hosts_owned else NOTHING
