"""Roost places every workload, and explains each decision."""

import typing

if typing.TYPE_CHECKING:
    from roost.direct.context import PlacementDirect

__all__ = ["PlacementDirect", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import ``PlacementDirect`` on first use, so that other imports of the package stay fast."""
    if name == "PlacementDirect":
        from roost.direct.context import PlacementDirect

        return PlacementDirect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
