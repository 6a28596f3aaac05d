"""Counterpart of ``nova.scheduler``."""

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
