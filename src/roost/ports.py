"""The seams: what each part needs of its neighbours, as protocols and nothing else."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from roost.model.journal import Change, EvidenceRow, Item, Refusal, Write

IdKind = Literal["symbol", "provider", "aggregate", "host", "group", "document", "consumer", "decision"]


class Clock(Protocol):
    """Time as an argument."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""

    def elapsed_s(self) -> float:
        """Return seconds of a clock that never goes back, for durations."""


class Random(Protocol):
    """Randomness as an argument."""

    def seed(self) -> int:
        """Return a fresh seed, 0..2**62 - 1."""

    def uuids(self, count: int) -> list[bytes]:
        """Return ``count`` fresh uuids, 16 bytes each, that sort by the time they were made."""


class Loaded(msgspec.Struct, frozen=True):
    """A whole database at one moment."""

    position: int  # of the newest change it holds
    writes: Iterator[Write]  # in an order in which they can be applied; read it to its end, once


class Committed(msgspec.Struct, frozen=True):
    """What became of a group of items."""

    refusals: list[Refusal | None]  # one an item, in order; None: accepted and durable
    position: int  # of the change that holds the accepted ones


class Store(Protocol):
    """The durable truth. One thread uses it at a time."""

    def load(self) -> Loaded:
        """Read everything, as of one moment, and remember that moment for ``changes``."""

    def reserve(self, kind: IdKind, count: int) -> int:
        """Return the first of ``count`` identities that nobody else will ever get."""

    def commit(self, items: Sequence[Item]) -> Committed:
        """Write items in one transaction, durable on return.

        Each item is taken whole or refused whole, judged in order against the rows as they are now:
        capacity and unit bounds of every inventory it takes from, places, generations, uniqueness.
        An error leaves nothing behind.

        Raises:
            StoreBroken: the database is read-only, full or corrupt.
            StoreBusy: another program has locked it.
            Unavailable: the server is gone. Whether the items are in is not known: load again before the next
                answer.
        """

    def changes(self) -> Sequence[Change]:
        """Return what was committed since the last call (or ``load``), this process's own left out.

        ``load`` comes before the first call.
        """

    def evidence(self, *, uuid: bytes | None = None, newest: int = 20) -> list[EvidenceRow]:
        """Return one stored decision, or the newest ones, newest first."""

    def prune(self, *, older_than_s: float, max_bytes: int) -> int:
        """Delete decisions and feed beyond the bounds, oldest first, a bounded number a call; return how many.

        Args:
            older_than_s: a moment, in seconds since the epoch; what was written before it goes.
            max_bytes: of decisions and feed together, >= 0; the oldest go until no more is left.
        """

    def close(self) -> None:
        """Let go of the database, and of the lock beside it."""


class Journal(Protocol):
    """A state in memory and the store behind it, kept equal. Lives in the engine's thread."""

    def refresh(self) -> None:
        """Apply what others committed, before an answer."""

    def commit(self, items: Iterable[Item]) -> list[Refusal | None]:
        """Make items durable and visible; one verdict an item."""
