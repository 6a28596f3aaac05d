"""Times relative to now."""

import time

from roost.cli.text.plain_text import format_time

_MINUTE_S, _HOUR_S, _DAY_S, _YEAR_S = 60, 3_600, 86_400, 365 * 86_400
# Unit, its seconds, and the seconds from which the next unit is used.
_UNITS = (
    ("s", 1, 2 * _MINUTE_S),
    ("min", _MINUTE_S, 2 * _HOUR_S),
    ("h", _HOUR_S, 2 * _DAY_S),
    ("d", _DAY_S, 2 * _YEAR_S),
    ("y", _YEAR_S, float("inf")),
)


def format_age(seconds: float, *, now_s: float | None = None) -> str:
    """Format seconds since the epoch as a time before or after now.

    >>> format_age(1_000, now_s=1_200), format_age(1_000, now_s=999.5), format_age(90_000, now_s=0)
    ('3 min ago', 'now', 'in 25 h')
    """
    age_s = (time.time() if now_s is None else now_s) - seconds
    unit, unit_s, _ = next(each for each in _UNITS if abs(age_s) < each[2])
    count = int(abs(age_s) // unit_s)
    if not count:
        return "now"
    return f"{count:,} {unit} ago" if age_s > 0 else f"in {count:,} {unit}"


def format_time_and_age(seconds: float | None) -> str:
    """Format seconds since the epoch as a UTC time and an age; None: unknown."""
    return "-" if seconds is None else f"{format_time(seconds)}, {format_age(seconds)}"
