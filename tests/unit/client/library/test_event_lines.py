"""The parser of server-sent events."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.client.library.event_lines import Event, EventLines
from roost.errors import Unavailable

STREAM = (
    b"retry: 1000\n\n: nothing happened\n\nid: run-1\nevent: claim\n"
    b'data: {"host": "\xc3\xa4"}\n\nevent: events_lost\n\n'
)
EVENTS = [None, None, Event("run-1", "claim", {"host": "ä"}), Event("", "events_lost", {})]


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_events_are_the_same_in_any_parts(cuts):
    lines, places = EventLines(), [0, *sorted(cuts), len(STREAM)]
    found = [lines.feed(STREAM[begin:end]) for begin, end in itertools.pairwise(places)]
    assert [event for part in found for event in part] == EVENTS


def test_malformed_event_is_an_error():
    with pytest.raises(Unavailable, match="malformed"):
        EventLines().feed(b"event: claim\ndata: {\n\n")
