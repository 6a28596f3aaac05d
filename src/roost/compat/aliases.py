"""Nova's module names, for plug-ins on a machine without Nova."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_OURS = "roost.compat"
# Packages that plug-ins import, with the stand-in for each that is not installed.
_LENT = {"nova": _OURS} | {
    name: f"{_OURS}.{name}" for name in ("netaddr", "oslo_config", "oslo_log", "oslo_serialization", "oslo_utils")
}
# Modules with another place or name than in Nova.
_MOVED = {
    "api.validation.extra_specs.base": "api.validation.extra_specs.extra_spec",
    "scheduler.caching_scheduler": "icehouse.caching_scheduler",
    "scheduler.chance": "icehouse.chance",
    "scheduler.driver": "icehouse.driver",
    "scheduler.filter_scheduler": "icehouse.filter_scheduler",
    "scheduler.filters.utils": "scheduler.filters.aggregate_values",
    "scheduler.manager": "icehouse.scheduler_manager",
    "scheduler.utils": "scheduler.rule_inputs",
}


def lend_names() -> None:
    """Make later imports of ``nova`` and its libraries find the modules here.

    Installed packages take precedence, both Nova and the libraries of its plug-ins.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # First, or else Python would also find our modules by Nova's names and load them twice.
        sys.meta_path.insert(0, _Finder())


def is_installed(package: str) -> bool:
    """Return whether a package is installed, and not a stand-in."""
    loaded = sys.modules.get(package)
    if loaded is not None:
        return not loaded.__name__.startswith(_OURS)
    spec = PathFinder.find_spec(package)
    # A plain folder of this name has no origin.
    return spec is not None and spec.origin is not None


class _Finder(MetaPathFinder):
    """Finds stand-ins for modules of Nova and oslo that are not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a stand-in; None: the module has none."""
        top, _, rest = fullname.partition(".")
        if top not in _LENT or is_installed(top):
            return None
        ours = f"{_LENT[top]}.{_MOVED.get(rest, rest)}" if rest else _LENT[top]
        try:
            is_ours = importlib.util.find_spec(ours) is not None
        except ModuleNotFoundError:
            is_ours = False
        return ModuleSpec(fullname, _Loader(ours)) if is_ours else None


class _Loader(Loader):
    def __init__(self, ours: str) -> None:
        self._ours = ours

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None, so that Python creates the module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the empty module by the stand-in."""
        sys.modules[module.__name__] = importlib.import_module(self._ours)
