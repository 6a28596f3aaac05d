"""The part of ``oslo_utils.timeutils`` that plug-ins use. Times are of UTC and have no zone."""

import datetime as dt


def utcnow(with_timezone: bool = False) -> dt.datetime:  # noqa: FBT001, FBT002  # oslo.utils'
    """Return the time."""
    now = dt.datetime.now(tz=dt.UTC)
    return now if with_timezone else now.replace(tzinfo=None)


def normalize_time(timestamp: dt.datetime) -> dt.datetime:
    """Return a time in UTC, without a zone."""
    return timestamp if timestamp.tzinfo is None else timestamp.astimezone(dt.UTC).replace(tzinfo=None)


def delta_seconds(before: dt.datetime, after: dt.datetime) -> float:
    """Return the seconds from one time to another."""
    return (normalize_time(after) - normalize_time(before)).total_seconds()


def is_older_than(before: dt.datetime, seconds: float) -> bool:
    """Say whether a time is more than so many seconds ago."""
    return delta_seconds(before, utcnow()) > seconds
