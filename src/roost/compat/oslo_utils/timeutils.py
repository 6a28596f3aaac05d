"""The part of ``oslo_utils.timeutils`` for plug-ins. Times are in UTC, without a time zone."""

import datetime as dt


def utcnow(with_timezone: bool = False) -> dt.datetime:  # noqa: FBT001, FBT002  # oslo.utils'
    """Return the current time."""
    now = dt.datetime.now(tz=dt.UTC)
    return now if with_timezone else now.replace(tzinfo=None)


def normalize_time(timestamp: dt.datetime) -> dt.datetime:
    """Convert a time to UTC, without a time zone."""
    return timestamp if timestamp.tzinfo is None else timestamp.astimezone(dt.UTC).replace(tzinfo=None)


def delta_seconds(before: dt.datetime, after: dt.datetime) -> float:
    """Return the seconds from one time to another."""
    return (normalize_time(after) - normalize_time(before)).total_seconds()


def is_older_than(before: dt.datetime, seconds: float) -> bool:
    """Return whether a time is more than ``seconds`` ago."""
    return delta_seconds(before, utcnow()) > seconds
