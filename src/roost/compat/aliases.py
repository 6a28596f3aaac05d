"""Nova's module names, for plug-ins on a machine without Nova."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_PACKAGE = "roost.compat"
# Packages imported by plug-ins: name -> stand-in, used if the package is not installed.
_STAND_INS = {"nova": _PACKAGE} | {
    name: f"{_PACKAGE}.{name}" for name in ("netaddr", "oslo_config", "oslo_log", "oslo_serialization", "oslo_utils")
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


def install_aliases() -> None:
    """Make later imports of ``nova`` and its libraries find the stand-ins.

    Installed packages take precedence, both Nova and the libraries of its plug-ins.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # Put the finder first. Otherwise Python would also find our modules by Nova's names, and load them twice.
        sys.meta_path.insert(0, _Finder())


def is_installed(package: str) -> bool:
    """Return whether a package is installed, and not a stand-in."""
    loaded = sys.modules.get(package)
    if loaded is not None:
        return not loaded.__name__.startswith(_PACKAGE)
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
        if top not in _STAND_INS or is_installed(top):
            return None
        stand_in = f"{_STAND_INS[top]}.{_MOVED.get(rest, rest)}" if rest else _STAND_INS[top]
        try:
            has_stand_in = importlib.util.find_spec(stand_in) is not None
        except ModuleNotFoundError:
            has_stand_in = False
        return ModuleSpec(fullname, _Loader(stand_in)) if has_stand_in else None


class _Loader(Loader):
    def __init__(self, stand_in: str) -> None:
        self._stand_in = stand_in

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None, so that Python creates the module."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the empty module by the stand-in."""
        sys.modules[module.__name__] = importlib.import_module(self._stand_in)
