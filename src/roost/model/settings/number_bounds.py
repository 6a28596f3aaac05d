"""The check of bounds that sections of the settings share."""

from collections.abc import Mapping


def require_bounds(section: object, bounds: Mapping[str, tuple[float, float]]) -> None:
    """Check that each named number of a section is within its bounds, both included.

    Raises:
        ValueError: a number is outside; the message names it.
    """
    for name, (lowest, highest) in bounds.items():
        value = getattr(section, name)
        if not lowest <= value <= highest:
            raise ValueError(f"{name} must be {lowest:g} to {highest:g}, got {value:g}")
