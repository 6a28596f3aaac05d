"""Nova's module names, for plug-ins that import them on a machine without Nova."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_OURS = "roost.compat"
# Packages that plug-ins import, and what stands in for each where it is not installed.
_LENT = {"nova": _OURS} | {
    name: f"{_OURS}.{name}" for name in ("netaddr", "oslo_config", "oslo_log", "oslo_serialization", "oslo_utils")
}
# Modules that have another place or name here than in Nova.
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
    """Let ``nova.scheduler.filters`` and its neighbours mean the modules here for imports that follow.

    An installed package is found first: of Nova, and of the libraries that its plug-ins import.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # First, because our packages would else be searched for files of Nova's names, and found twice.
        sys.meta_path.insert(0, _Finder())


def is_installed(package: str) -> bool:
    """Say whether a package is there itself, and not lent."""
    loaded = sys.modules.get(package)
    if loaded is not None:
        return not loaded.__name__.startswith(_OURS)
    spec = PathFinder.find_spec(package)
    # A folder of this name that is no package has no origin.
    return spec is not None and spec.origin is not None


class _Finder(MetaPathFinder):
    """Finds modules of Nova's names, and of oslo's, where they are not installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import one of Nova's names, if it is lent."""
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
        """Leave it to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put our module in the place of the empty one."""
        sys.modules[module.__name__] = importlib.import_module(self._ours)
