"""What Nova has in ``nova.scheduler``."""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Return the module that Nova calls ``manager``, for ``from nova.scheduler import manager``."""
    if name != "manager":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return import_module(f"{__name__}.scheduler_manager")
