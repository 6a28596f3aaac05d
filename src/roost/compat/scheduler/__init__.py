"""Counterpart of ``nova.scheduler``.

``host_manager``: filters and weighs all hosts.
``filters``: the base of filters, and all filters.
``weights``: the base of weighers, and all weighers.
``host_state``: the state of one host.
``host_list``: host states in place of columns, for Roost's rules.
``aggregates``: metadata of a host's aggregates.
``rule_inputs``: Nova's ``utils``: options and multipliers.
``selections``: results in the forms of Nova's releases.
``module_table``: Nova's module names for the classes.
``client``: Nova's report client.
"""

from importlib import import_module
from types import ModuleType

# Modules with another place or name than in Nova.
_MOVED = {
    "caching_scheduler": "roost.compat.icehouse.caching_scheduler",
    "chance": "roost.compat.icehouse.chance",
    "driver": "roost.compat.icehouse.driver",
    "filter_scheduler": "roost.compat.icehouse.filter_scheduler",
    "manager": "roost.compat.icehouse.scheduler_manager",
    "utils": "roost.compat.scheduler.rule_inputs",
}


def __getattr__(name: str) -> ModuleType:
    """Return a module under its name in Nova, for ``from nova.scheduler import utils``."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return import_module(_MOVED[name])
