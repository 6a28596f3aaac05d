"""Moments in options: a date, or a duration before now."""

import re
import time
from datetime import UTC, datetime

from roost.errors import BadRequest

_SPAN = re.compile(r"([0-9]{1,9})([smhdw])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def parse_moment(text: str, *, option: str) -> float:
    """Parse a time, either a duration before now or a date; return seconds since the epoch.

    Raises:
        BadRequest: the text is neither.
    """
    span = _SPAN.fullmatch(text)
    if span is not None:
        return time.time() - int(span[1]) * _SECONDS[span[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        if _DATE.match(text):
            raise BadRequest(f"{option}: {text!r} is not a date and time of the calendar: {error}") from None
        raise BadRequest(f"{option} must be like 90m, 12h, 7d or 2026-01-31T12:00, got {text!r}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
