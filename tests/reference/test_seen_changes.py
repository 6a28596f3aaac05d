"""A vector has the same changes as a plain set of them, after any interleaving and any loss."""

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.store.rules.vector import Found, Vector, is_whole
from tests.reference.seen_changes import Feed, Process, Reader

PROCESSES = 2
acts = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "register", "no answer", "end", "read", "read", "lose", "read and lose"]),
        st.integers(0, PROCESSES - 1),
        st.integers(1, 4),
    ),
    max_size=40,
)


def act(kind, feed, process, count):
    match kind:
        case "write" | "no answer":
            process.write(is_answered=kind == "write")
        case "register":
            process.register()
        case "end":
            process.end()
        case "lose":
            del feed.entries[-count:]


def split(steps):
    """Yield single acts; at the end, all readers read."""
    for kind, who, count in steps:
        if kind == "read and lose":
            yield from (("read", who, 0), ("lose", who, count), ("read", who, 0))
        else:
            yield kind, who, count
    yield from (("read", who, 0) for who in range(PROCESSES))


@settings(max_examples=600)
@given(acts)
def test_readers_find_new_changes_once_and_notice_each_loss(steps):
    feed = Feed()
    processes, readers = [Process(feed) for _ in range(PROCESSES)], [Reader(feed) for _ in range(PROCESSES)]
    for kind, who, count in split(steps):
        act(kind, feed, processes[who], count)
        if kind != "read":
            continue
        reader = readers[who]
        lost = reader.seen - {*feed.entries}
        result = reader.read()
        if result is None:
            assert lost, "nothing was lost"
            reader.load()
            continue
        assert not [entry for entry in lost if entry.previous is None and not entry.is_last], "a loss was missed"
        expected, found = result
        assert found == expected


@st.composite
def readers_of_one_feed(draw):
    feed = Feed()
    processes, readers = [Process(feed) for _ in range(PROCESSES)], [Reader(feed), Reader(feed)]
    for kind, who, _ in draw(acts):
        if kind == "read":
            assert readers[who % 2].read() is not None
        elif "lose" not in kind:
            act(kind, feed, processes[who], 0)
    return feed, *readers


@settings(max_examples=300)
@given(readers_of_one_feed())
def test_vectors_compare_like_sets(found):
    feed, first, second = found
    for entry in feed.changes():
        assert first.vector.contains(entry.writer, entry.seq) == (entry in first.seen)
    assert first.vector.covers(second.vector) == (second.seen <= first.seen)
    assert Vector.from_text(first.vector.to_text()) == first.vector
    if not first.vector.covers(second.vector):
        return
    missing = first.vector.missing_in(second.vector)
    spans = {span.writer: span for span in missing.spans}
    low, high = missing.high
    inside = {
        entry
        for entry in feed.changes()
        if (
            spans[entry.writer].after < entry.seq and (spans[entry.writer].until is None or entry in first.seen)
            if entry.writer in spans
            else low < entry.writer <= high
        )
    }
    assert inside == {entry for entry in first.seen - second.seen if entry.previous is None}
    for span in missing.spans:
        stored = [entry for entry in inside if entry.writer == span.writer]
        assert is_whole(span, summary(stored))
        for gone in stored:
            assert not is_whole(span, summary([entry for entry in stored if entry is not gone]))


def summary(entries):
    """Return what a database finds of a span."""
    numbers = [entry.seq for entry in entries]
    is_closed = any(entry.is_last for entry in entries)
    return Found(len(numbers), min(numbers), max(numbers), is_closed) if numbers else None
