"""Windows of time: their form, and the next opening, compared with a scan of the calendar."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.model.work.move_windows import opening_at, parse_window

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTES = st.integers(0, 1439)


def is_open(window, moment):
    """Return whether a moment is in a window: days, and minutes of its begin and end."""
    days, begin, end = window
    minute = moment.hour * 60 + moment.minute
    today, yesterday = (DAYS[each.weekday()] for each in (moment, moment - timedelta(days=1)))
    if begin < end:
        return today in days and begin <= minute < end
    return (today in days and minute >= begin) or (yesterday in days and minute < end)


def first_open_minute(windows, now_s):
    """Return the earliest time in a window, by a look at each minute."""
    minute = int(now_s // 60) * 60
    while not any(is_open(window, datetime.fromtimestamp(minute, UTC)) for window in windows):
        minute += 60
    return max(float(minute), now_s)


def text_of(days, begin, end):
    times = "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in (begin, end))
    return times if days == set(DAYS) else f"{','.join(sorted(days))}@{times}"


WINDOWS = st.tuples(st.sets(st.sampled_from(DAYS), min_size=1), MINUTES, st.integers(0, 1440)).filter(
    lambda window: window[1] != window[2]
)


@given(st.lists(WINDOWS, min_size=1, max_size=3), st.floats(0, 4e9, allow_nan=False))
def test_next_opening_is_that_of_the_calendar(windows, now_s):
    parsed = [parse_window(text_of(*window)) for window in windows]
    assert opening_at(parsed, now_s) == first_open_minute(windows, now_s)


def test_without_windows_all_times_are_open():
    assert opening_at([], 5.5) == 5.5


def test_a_window_over_midnight_belongs_to_the_day_of_its_begin():
    window = parse_window("Sat,SUN@22:00-06:00")
    saturday, monday = (datetime(2026, 11, day, 5, tzinfo=UTC).timestamp() for day in (28, 30))
    assert opening_at([window], saturday) == saturday + 17 * 3600
    assert opening_at([window], monday) == monday
    assert opening_at([window], monday + 3600) == monday + 5 * 86_400 + 17 * 3600


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must have the form HH:MM-HH:MM or sat,sun@HH:MM-HH:MM"),
        ("9:00-10:00", "must have the form"),
        ("09:00", "must have the form"),
        ("@09:00-10:00", "must have the form"),
        ("sat,@09:00-10:00", "must have the form"),
        ("day@09:00-10:00", "must have the form"),
        ("09:00-10:00 ", "must have the form"),
        ("²1:00-10:00", "must have the form"),
        ("25:00-10:00", "from 00:00 to 23:59"),
        ("09:60-10:00", "from 00:00 to 23:59"),
        ("24:00-10:00", "from 00:00 to 23:59"),
        ("22:00-24:01", "from 00:00 to 23:59"),
        ("22:00-22:00", "is empty"),
    ],
)
def test_wrong_windows_are_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        parse_window(text)


@pytest.mark.parametrize(("text", "hours"), [("00:00-24:00", 24), ("22:00-24:00", 2), ("22:00-00:00", 2)])
def test_a_window_may_end_at_midnight(text, hours):
    assert parse_window(text).length_s == hours * 3600
