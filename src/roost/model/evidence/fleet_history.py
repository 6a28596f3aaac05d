"""The history of a fleet: amounts by class and zone, and decisions by outcome, over time."""

import zlib

import msgspec

MINUTE_S = 60


class ClassAmounts(msgspec.Struct, frozen=True, array_like=True):
    """The amounts of one resource class in one zone, at one moment."""

    resource_class: str
    zone: str
    capacity: int
    used: int
    stranded: int  # free on usable hosts without room for an instance of average size
    unusable: int  # free on hosts that are down or disabled


class DecisionCounts(msgspec.Struct, frozen=True, array_like=True):
    """The decisions of a period."""

    granted: int = 0
    failed: int = 0  # requests that ended with an error
    refused: dict[str, int] = {}  # by rule and class of the reason, as ``rule/class``

    def __bool__(self) -> bool:
        return bool(self.granted or self.failed or self.refused)


class HistoryRow(msgspec.Struct, frozen=True, array_like=True):
    """A stored row of the history, encoded."""

    minute: int  # since the epoch; of a period of several minutes, the first
    part: str  # empty: amounts, and the counts of a longer period; otherwise the process with these counts
    amounts: bytes
    counts: bytes

    @property
    def size(self) -> int:
        """The bytes of the row."""
        return len(self.amounts) + len(self.counts)


class ClassHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The amounts of one resource class over time; null: unknown."""

    resource_class: str
    capacity: list[int | None]
    used: list[int | None]
    stranded: list[int | None]
    unusable: list[int | None]


class RefusalHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Refused decisions over time, by the rule that rejected the most hosts and the class of its reason."""

    rule: str
    reason: str
    counts: list[int]


class FleetHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The history of a fleet. All arrays have the length of ``times``."""

    since_s: int
    until_s: int
    step_s: int  # length of a period
    times: list[int]  # starts of the periods, in seconds since the epoch
    zones: list[str]  # all zones of the period
    classes: list[ClassHistory]
    granted: list[int]
    failed: list[int]
    refused: list[RefusalHistory]  # most refusals first


_amounts = msgspec.msgpack.Decoder(list[ClassAmounts])
_counts = msgspec.msgpack.Decoder(DecisionCounts)


def encode_amounts(amounts: list[ClassAmounts]) -> bytes:
    """Return amounts in their stored form."""
    return zlib.compress(msgspec.msgpack.encode(amounts)) if amounts else b""


def decode_amounts(body: bytes) -> list[ClassAmounts]:
    """Return amounts from their stored form."""
    return _amounts.decode(zlib.decompress(body)) if body else []


def encode_counts(counts: DecisionCounts) -> bytes:
    """Return counts in their stored form."""
    return msgspec.msgpack.encode(counts) if counts else b""


def decode_counts(body: bytes) -> DecisionCounts:
    """Return counts from their stored form."""
    return _counts.decode(body) if body else DecisionCounts()


def add_counts(parts: list[DecisionCounts]) -> DecisionCounts:
    """Return the sum of the counts of several periods or processes."""
    refused: dict[str, int] = {}
    for part in parts:
        for reason, count in part.refused.items():
            refused[reason] = refused.get(reason, 0) + count
    return DecisionCounts(sum(part.granted for part in parts), sum(part.failed for part in parts), refused)
