"""Vectors of changes: texts, order and gaps."""

import pytest

from roost.store.rules.vector import NO_CHANGE, ChangeKey, Found, NewWriter, Span, Vector, is_vector_text, is_whole


@pytest.mark.parametrize(
    ("vector", "text"),
    [
        (Vector(), "w0"),
        (Vector(20, {16: 14, 20: NO_CHANGE}), "w14:10.f:4.0"),
        (Vector(2**40, {2**40: 2**30}), "w10000000000:10000000000.40000001"),
    ],
)
def test_text_has_the_open_writers(vector, text):
    assert vector.to_text() == text
    assert Vector.from_text(text) == vector
    assert is_vector_text(text)


@pytest.mark.parametrize("text", ["", "798:798:", "w", "wx", "w1:2", "w1:2.3.4"])
def test_invalid_text_is_an_error(text):
    with pytest.raises(ValueError):  # the text of int() varies
        Vector.from_text(text)


def test_changes_continue_without_a_gap():
    vector = Vector(5, {5: 3})
    assert vector.advance([ChangeKey(5, 4), ChangeKey(5, 5)]) == Vector(5, {5: 5})
    assert vector.advance([ChangeKey(5, 3)]) == vector
    assert vector.advance([ChangeKey(5, 5)]) is None
    assert vector.advance([ChangeKey(7, 0)]) is None, "the writer did not register"


def test_new_writers_are_a_chain():
    vector = Vector(5)
    assert vector.advance([ChangeKey(9, 0)], [NewWriter(8, 5), NewWriter(9, 8)]) == Vector(9, {8: NO_CHANGE, 9: 0})
    assert vector.advance([], [NewWriter(9, 8)]) is None, "writer 8 was deleted unread"


def test_closed_writer_is_looked_for_until_later_changes_arrive():
    closed = Vector(6, {5: 3, 6: 0}).advance([ChangeKey(5, 4, is_last=True)])
    assert closed == Vector(6, {6: 0})
    assert sorted(closed.last_changes()) == [(5, 4), (6, 0)]
    assert closed.is_in([ChangeKey(5, 4, is_last=True), ChangeKey(6, 0)])
    assert not closed.is_in([ChangeKey(5, 4), ChangeKey(6, 0)])
    assert not closed.is_in([ChangeKey(6, 0)])
    assert closed.advance([ChangeKey(6, 1)]).last_changes() == [(6, 1)]
    assert closed.advance([ChangeKey(5, 5)]) == closed, "nothing follows the last change"


def test_known_change_replaced_by_a_last_one_is_missing():
    assert not Vector(5, {5: 3}).is_in([ChangeKey(5, 3, is_last=True)])


@pytest.mark.parametrize(
    ("span", "found", "expected"),
    [
        (Span(1, 2, 5), Found(3, 3, 5, False), True),
        (Span(1, 2, 5), Found(2, 3, 5, False), False),
        (Span(1, 2, 5), Found(3, 3, 5, True), False),
        (Span(1, 2, None), Found(3, 3, 5, True), True),
        (Span(1, 2, None), Found(3, 3, 5, False), False),
        (Span(1, 2, 5), None, False),
        (Span(1, NO_CHANGE, NO_CHANGE), None, True),
    ],
)
def test_span_is_whole_without_gaps(span, found, expected):
    assert is_whole(span, found) is expected


def test_new_writer_without_a_known_change_lacks_nothing():
    missing = Vector(7, {5: 1, 7: NO_CHANGE}).missing_in(Vector(5, {5: 1}))
    assert missing.spans == [Span(7, NO_CHANGE, NO_CHANGE)]
