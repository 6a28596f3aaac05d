"""Roost decides where every workload runs, and shows why."""

import typing

if typing.TYPE_CHECKING:
    from roost.direct.context import PlacementDirect

__all__ = ["PlacementDirect", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Import what is asked for; most who import the package want something else of it."""
    if name == "PlacementDirect":
        from roost.direct.context import PlacementDirect

        return PlacementDirect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
