"""Nova's module names, for plug-ins that import them on a machine without Nova."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_OURS = "roost.compat"
# Names that say nothing here; what Nova has under them is called by what it is.
_CALLED = {
    "api.validation.extra_specs.base": "api.validation.extra_specs.extra_spec",
    "scheduler.manager": "scheduler.scheduler_manager",
}


def lend_names() -> None:
    """Let ``nova.scheduler.filters`` and its neighbours mean the modules here, once somebody imports them.

    Where Nova is installed it is found first, and nothing changes.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # First, because our packages would else be searched for files of Nova's names, and found twice.
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    """Finds modules of Nova's names where there is no Nova."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import one of Nova's names, if it is lent."""
        top, _, rest = fullname.partition(".")
        if top != "nova" or (not rest and PathFinder.find_spec("nova") is not None):
            return None
        if rest and getattr(sys.modules.get("nova"), "__name__", "") != _OURS:
            return None
        ours = f"{_OURS}.{_CALLED.get(rest, rest)}" if rest else _OURS
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
