"""Windows of time for the moves of a plan, in UTC: daily, or on some weekdays."""

import re
from collections.abc import Sequence
from typing import NamedTuple

WINDOWS_MAX = 20
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_S = 86_400
_FIRST_DAY = 3  # the epoch began on a Thursday
_FORM = re.compile(r"(?:([a-z]{3}(?:,[a-z]{3})*)@)?(\d\d):(\d\d)-(\d\d):(\d\d)", re.ASCII)


class Window(NamedTuple):
    """A window of time on each of some weekdays."""

    days: frozenset[int]  # on which it begins; 0 is Monday
    begin_s: int  # seconds after midnight
    length_s: int  # above 0, at most a day


def parse_window(text: str) -> Window:
    """Return the window of a text such as ``22:00-06:00`` or ``sat,sun@22:00-06:00``.

    Raises:
        ValueError: it has another form, or the window is empty.
    """
    found = _FORM.fullmatch(text.lower())
    names = [] if found is None or not found[1] else found[1].split(",")
    if found is None or not set(names).issubset(_DAYS):
        raise ValueError(f"the window {text[:70]!r} must have the form HH:MM-HH:MM or sat,sun@HH:MM-HH:MM")
    begin_s, end_s = (_seconds(*found.group(at, at + 1)) for at in (2, 4))
    if begin_s is None or end_s is None or begin_s == _DAY_S:
        raise ValueError(f"the window {text!r} must have times from 00:00 to 23:59; it may end at 24:00")
    if begin_s == end_s:
        raise ValueError(f"the window {text!r} is empty: it begins and ends at the same time")
    days = frozenset(map(_DAYS.index, names)) or frozenset(range(7))
    return Window(days, begin_s, (end_s - begin_s) % _DAY_S or _DAY_S)


def opening_at(windows: Sequence[Window], now_s: float) -> float:
    """Return the earliest time in a window, from now on.

    Args:
        windows: none permits all times.
        now_s: the time now, in seconds since the epoch.
    """
    return min((_opening_of(window, now_s) for window in windows), default=now_s)


def _opening_of(window: Window, now_s: float) -> float:
    today = int(now_s // _DAY_S)
    # The window of yesterday may last until today; a window of one weekday may be over today.
    days = (day for day in range(today - 1, today + 8) if (day + _FIRST_DAY) % 7 in window.days)
    begins = (day * _DAY_S + window.begin_s for day in days)
    return next(max(float(begin_s), now_s) for begin_s in begins if begin_s + window.length_s > now_s)


def _seconds(hours: str, minutes: str) -> int | None:
    """Return a time of the day in seconds; None: the day has no such time."""
    seconds = int(hours) * 3600 + int(minutes) * 60
    return seconds if int(minutes) < 60 and seconds <= _DAY_S else None
