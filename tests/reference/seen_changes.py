"""Readers and writers of a feed that may lose its newest entries: each reader keeps the set of all entries it read."""

from typing import NamedTuple

from roost.store.rules.vector import NO_CHANGE, ChangeKey, NewWriter, Vector


class Entry(NamedTuple):
    """A registration (with ``previous``) or a change."""

    number: int  # of the entry, never used twice
    writer: int
    seq: int = NO_CHANGE
    is_last: bool = False
    previous: int | None = None

    @property
    def key(self) -> ChangeKey:
        """The key of a change."""
        return ChangeKey(self.writer, self.seq, self.is_last)


class Feed:
    """The committed entries, in the order of their commits."""

    def __init__(self):
        self.entries: list[Entry] = []
        self.count = 0  # entries ever committed
        self.highest = 0  # writer ever registered

    def append(self, **values):
        """Commit an entry, and return it."""
        self.count += 1
        self.entries.append(Entry(self.count, **values))
        return self.entries[-1]

    def changes(self):
        """Return the stored changes."""
        return [entry for entry in self.entries if entry.previous is None]

    def registrations(self):
        """Return the stored registrations."""
        return [entry for entry in self.entries if entry.previous is not None]

    def register(self):
        """Register a writer; return its id."""
        previous = max((entry.writer for entry in self.registrations()), default=0)
        self.highest += 1
        return self.append(writer=self.highest, previous=previous).writer

    def close(self, writer):
        """Close a writer, unless it is closed, or its registration was lost."""
        own = [entry for entry in self.changes() if entry.writer == writer]
        is_registered = any(entry.writer == writer for entry in self.registrations())
        if is_registered and not any(entry.is_last for entry in own):
            self.append(writer=writer, seq=max((entry.seq for entry in own), default=NO_CHANGE) + 1, is_last=True)


class Process:
    """A process that writes, with the rules of ``OwnWriter``."""

    def __init__(self, feed):
        self._feed = feed
        self._writer = None
        self._last = None  # entry of the last change, or None
        self._is_pending = False

    def register(self):
        """Register, unless the writer can continue."""
        if self._writer is not None and (self._is_pending or not self._can_continue()):
            self.end()
        if self._writer is None:
            self._writer, self._last = self._feed.register(), None

    def write(self, *, is_answered):
        """Commit a change; without an answer, its outcome is unknown to the process."""
        self.register()
        seq = NO_CHANGE if self._last is None else self._last.seq
        entry = self._feed.append(writer=self._writer, seq=seq + 1)
        self._is_pending = not is_answered
        if is_answered:
            self._last = entry

    def end(self):
        """Close the writer."""
        if self._writer is not None:
            self._feed.close(self._writer)
        self._writer, self._last, self._is_pending = None, None, False

    def _can_continue(self):
        if any(entry.writer == self._writer and entry.is_last for entry in self._feed.entries):
            return False
        if self._last is None:
            return any(entry.writer == self._writer for entry in self._feed.registrations())
        return self._last in self._feed.entries


class Reader:
    """A process that reads, with a vector and with a set."""

    def __init__(self, feed):
        self._feed = feed
        self.load()

    def load(self):
        """Read everything."""
        self.vector = self._all()
        self.seen = {*self._feed.entries}

    def _all(self):
        vector = Vector().advance(*self._rows(Vector()))
        assert vector is not None
        return vector

    def _rows(self, vector):
        """Return the new changes and the new writers, as by the statement of a database."""
        last = dict(vector.last_changes())
        writers = [
            NewWriter(entry.writer, entry.previous)
            for entry in self._feed.registrations()
            if entry.writer > vector.high
        ]
        last |= dict.fromkeys((writer.writer for writer in writers), NO_CHANGE)
        keys = [entry.key for entry in self._feed.changes() if entry.seq >= last.get(entry.writer, 2**62)]
        return sorted(keys), writers

    def read(self):
        """Return the numbers of the new changes by the set, and by the vector; None: changes were lost."""
        keys, writers = self._rows(self.vector)
        high = max((entry.writer for entry in self._feed.registrations()), default=0)
        vector = self.vector.advance(keys, writers) if self.vector.is_in(keys) else None
        if vector is None or vector.high != high:
            return None
        by_key = {entry.key: entry.number for entry in self._feed.changes()}
        found = {by_key[key] for key in keys if not self.vector.contains(key.writer, key.seq)}
        expected = {entry.number for entry in self._feed.changes() if entry not in self.seen}
        self.vector, self.seen = vector, {*self._feed.entries}
        return expected, found
