"""A decision: the chosen hosts, the alternates, and the evidence for both."""

from typing import Literal

import msgspec


class Stage(msgspec.Struct, frozen=True, array_like=True):
    """One rule's verdict: how many hosts it saw, how many it left, and why it refused the others."""

    rule: str  # search, or the name of a filter
    before: int
    after: int
    reason: str = ""  # what the refused hosts lack, without a subject: "lack 2,048 MiB memory or more"


class HostScore(msgspec.Struct, frozen=True, array_like=True):
    """How one host scored: one entry a weigher, in the order of ``Decision.weighers``."""

    host: str
    total: float  # sum of the contributions
    raw: list[float]
    normalised: list[float]
    multiplier: list[float]
    contribution: list[float]


class Pick(msgspec.Struct, frozen=True, array_like=True):
    """A host for one instance, with the amounts it holds or, of an alternate, would hold there."""

    host: str
    node: str
    cell: str
    instance_uuid: str  # empty in an alternate
    allocations: dict[str, dict[str, int]]  # provider uuid -> resource class -> amount


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a request, and everything that led to it."""

    uuid: str
    decided_at_s: float
    outcome: Literal["granted", "refused"]
    request_id: int  # document that holds the request without its uuids
    count: int = 1
    picks: list[Pick] = []  # one an instance; none when refused: all or nothing
    alternates: dict[str, list[Pick]] = {}  # by cell, best first
    stages: list[Stage] = []  # of the first instance; of the one that found no host when refused
    weighers: list[str] = []
    best: list[HostScore] = []  # the five best hosts for the first instance
    reason: str = ""  # of a refusal, in one line
    conflicts: list[str] = []  # hosts lost to concurrent writers
    position: int = 0  # of the feed, when it was decided
    seed: int = 0
    settings_id: int = 0  # document
    search_s: float = 0.0
    rank_s: float = 0.0

    @property
    def is_granted(self) -> bool:
        """Say whether every instance has its host."""
        return self.outcome == "granted"
