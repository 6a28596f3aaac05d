"""What Nova has in ``nova.scheduler``."""

from importlib import import_module
from types import ModuleType

# Names of Nova that say nothing here, and what their modules are called.
_CALLED = {"manager": "scheduler_manager", "utils": "rule_inputs"}


def __getattr__(name: str) -> ModuleType:
    """Return a module under its name in Nova, for ``from nova.scheduler import utils``."""
    if name not in _CALLED:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return import_module(f"{__name__}.{_CALLED[name]}")
