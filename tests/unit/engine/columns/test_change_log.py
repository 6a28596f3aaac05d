"""Cursors and arrays that follow the changes of hosts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns import change_log
from roost.engine.columns.change_log import Changes, FollowedArrays, HostCursor


def test_cursor_returns_each_changed_host_once_after_the_first_call():
    changes = Changes()
    cursor = HostCursor(changes)
    assert cursor.advance() is None
    assert cursor.advance() == []
    for row in (3, 1, 3):
        changes.hosts.add(row)
    assert cursor.advance() == [3, 1]
    assert cursor.advance() == []


def test_cursor_does_not_know_the_hosts_after_a_static_change_or_too_many_changes():
    changes = Changes()
    cursor = HostCursor(changes)
    cursor.advance()
    changes.touch_all()
    assert cursor.advance() is None
    for _ in range(3 * change_log._ENTRIES_MIN):
        changes.hosts.add(0)
    assert cursor.advance() is None


HOSTS = 6
EVENTS = st.one_of(st.tuples(st.just("change"), st.integers(0, HOSTS - 1)), st.just(("epoch", 0)), st.just(("read", 0)))


@given(st.lists(EVENTS, max_size=30))
def test_followed_array_equals_one_computed_anew(events):
    changes, values = Changes(), np.zeros((HOSTS, 2))
    arrays = FollowedArrays(changes)
    for number, (event, row) in enumerate(events):
        if event == "change":
            values[row] = number
            changes.hosts.add(row)
        elif event == "epoch":
            values[:] += 1000
            changes.touch_all()
        else:
            found = arrays.get("key", lambda rows: values.copy() if rows is None else values[rows])
            assert found.tolist() == values.tolist()


@given(st.lists(EVENTS, max_size=30))
def test_followed_sum_equals_one_computed_anew(events):
    changes, values = Changes(), np.zeros((HOSTS, 2), dtype=np.int64)
    arrays = FollowedArrays(changes)
    for number, (event, row) in enumerate(events):
        if event == "change":
            values[row] = number, -number
            changes.hosts.add(row)
        elif event == "epoch":
            values[:] += 1000
            changes.touch_all()
        else:
            found, total = arrays.get_with_sum("key", lambda rows: values.copy() if rows is None else values[rows])
            assert found.tolist() == values.tolist()
            assert total.tolist() == values.sum(axis=0).tolist()


def test_a_followed_sum_is_a_new_array_when_hosts_changed():
    changes, values = Changes(), np.ones((HOSTS, 1), dtype=np.int64)
    arrays = FollowedArrays(changes)

    def make(rows):
        return values.copy() if rows is None else values[rows]

    _, first = arrays.get_with_sum("key", make)
    assert arrays.get_with_sum("key", make)[1] is first
    changes.hosts.add(2)
    values[2] = 5
    assert first.tolist() == [6]
    assert arrays.get_with_sum("key", make)[1].tolist() == [10]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_only_changed_hosts_are_computed_again():
    changes, calls = Changes(), []

    def make(rows):
        calls.append(None if rows is None else rows.tolist())
        return np.zeros(10 if rows is None else len(rows))

    arrays = FollowedArrays(changes)
    arrays.get("key", make)
    changes.hosts.add(4)
    arrays.get("key", make)
    arrays.get("key", make)
    arrays.get("other", make)
    assert calls == [None, [4], None]


def test_the_array_cannot_be_written_and_a_read_only_one_is_not_written():
    changes, column = Changes(), np.zeros(10)
    column.flags.writeable = False
    arrays = FollowedArrays(changes)
    found = arrays.get("key", lambda _rows: column)
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1
    changes.hosts.add(4)
    assert arrays.get("key", lambda rows: np.ones(len(rows))).tolist() == [0.0] * 4 + [1.0] + [0.0] * 5
    assert not column.any()


def test_an_array_is_computed_anew_after_an_error():
    changes = Changes()
    arrays = FollowedArrays(changes)
    arrays.get("key", lambda _rows: np.zeros(10))
    changes.hosts.add(4)
    with pytest.raises(ZeroDivisionError):
        arrays.get("key", lambda _rows: 1 / 0)
    assert arrays.get("key", lambda _rows: np.ones(10)).tolist() == [1.0] * 10


def test_the_least_recently_used_arrays_are_dropped(monkeypatch):
    monkeypatch.setattr(change_log, "_ELEMENTS_MAX", 25)
    arrays, calls = FollowedArrays(Changes()), []
    for key in "abacb":
        arrays.get(key, lambda _rows, key=key: calls.append(key) or np.zeros(10))
    assert calls == ["a", "b", "c", "b"]
