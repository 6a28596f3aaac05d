"""A decision: the chosen hosts, the alternates, and the evidence for both."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from roost.model.evidence.fleet_part import FleetPart


class Stage(msgspec.Struct, frozen=True, array_like=True):
    """One rule's verdict: the number of hosts before and after it, and why it refused hosts."""

    rule: str  # search, or the name of a filter
    before: int
    after: int
    reason: str = ""  # why hosts were refused, without a subject: "lack 2,048 MiB memory or more"


class Scale(msgspec.Struct, frozen=True, array_like=True):
    """The scale from one weigher's raw weights to contributions; equal for all hosts of a decision.

    ``contribution = (raw - low) / (high - low) * multiplier``, 0 where ``high`` equals ``low``.
    """

    weigher: str
    low: float
    high: float
    multiplier: float  # aggregates of a host may override it

    def contribution(self, raw: float) -> float:
        """Return the contribution of a raw weight to its host's score."""
        if self.high == self.low:
            return 0.0
        return (raw - self.low) / (self.high - self.low) * self.multiplier


class HostScore(msgspec.Struct, frozen=True, array_like=True):
    """The score of one host: one entry per weigher, in the order of ``Decision.scales``."""

    host: str
    total: float  # sum of the contributions
    raw: list[float]  # omits trailing entries whose scale has ``low == high``
    multipliers: list[float] = []  # one per weigher; empty if no aggregate overrides those of the scales


class Contribution(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a score table: a host's score by one weigher."""

    weigher: Annotated[str, Meta(description="Name of the weigher.")]
    raw: Annotated[
        float, Meta(description="Raw weight in the unit of the weigher, clamped to its minimum and maximum.")
    ]
    normalised: Annotated[float, Meta(description="Raw weight on the scale of all accepted hosts, 0 to 1.")]
    multiplier: Annotated[
        float, Meta(description="Multiplier of the weigher: from an aggregate of the host, else from the settings.")
    ]
    contribution: Annotated[float, Meta(description="normalised * multiplier.")]


# Limits on the use of a host, by Nova's names: amounts, and for NUMA cells overcommit ratios and networks.
Limits = dict[str, float | dict[str, float | dict[str, bool | list[str]]]]


class Pick(msgspec.Struct, frozen=True, array_like=True):
    """A host for one instance, with the instance's allocations; the allocations of an alternate are only planned."""

    host: str
    node: str
    cell: str
    instance_uuid: str  # empty in an alternate
    allocations: dict[str, dict[str, int]]  # provider uuid -> resource class -> amount
    limits: Limits = {}  # from filters; empty if the host was forced
    # Suffix of a resource group -> uuids of its providers: for PCI devices in Placement, and if the request itself has
    # groups with suffixes, as for ports.
    mappings: dict[str, tuple[str, ...]] = {}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision of a request, with all evidence."""

    uuid: str
    decided_at_s: float
    outcome: Literal["granted", "refused"]
    request_id: int  # id of the stored request document, which omits uuids
    count: int = 1
    found: int = 0  # number of instances that got a host; equals ``count`` if granted
    picks: list[Pick] = []  # one per instance; empty if refused
    alternates: dict[str, list[Pick]] = {}  # by cell, best first
    stages: list[Stage] = []  # for the first instance; if refused, for the instance that found no host
    scales: list[Scale] = []  # empty for a single remaining host, which needs no weights
    best: list[HostScore] = []  # the five best hosts for the first instance
    reason: str = ""  # of a refusal, in one line
    warnings: list[str] = []  # ignored parts of the request, one sentence each
    conflicts: list[str] = []  # hosts lost to concurrent writers
    position: int = 0  # feed position at the time of the decision
    seed: int = 0
    settings_id: int = 0  # id of the stored settings document
    search_s: float = 0.0
    rank_s: float = 0.0
    project_id: str = ""  # of the request, like the user
    user_id: str = ""
    instance_uuids: list[str] = []  # of a refusal: those of the request; a stored decision has the first 1,000
    part: FleetPart | None = None  # of the deciding process; None: the process chose among all hosts from the start

    @property
    def is_granted(self) -> bool:
        """Whether every instance has a host."""
        return self.outcome == "granted"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The chosen hosts, each once."""
        picks = self.picks
        return (picks[0].host,) if len(picks) == 1 else tuple(dict.fromkeys(pick.host for pick in picks))

    def raws(self, score: HostScore) -> list[float]:
        """Return all raw weights of one of the best hosts, one per weigher, in the order of ``scales``."""
        return score.raw + [scale.low for scale in self.scales[len(score.raw) :]]

    def table(self) -> dict[str, list[Contribution]]:
        """Return the score table of the best hosts: host -> one entry per weigher."""
        if not self.best or any(score.multipliers for score in self.best):
            return {score.host: cells(self.scales, score) for score in self.best}
        # Weighers without stored raw weights have the same weight on every host.
        count = len(self.best[0].raw)
        scales, same = self.scales[:count], cells(self.scales[count:], HostScore("", 0.0, []))
        return {score.host: cells(scales, score) + same for score in self.best}


def cells(scales: Sequence[Scale], score: HostScore) -> list[Contribution]:
    """Return one host's entries in the score table, one per weigher, in the order of ``scales``."""
    raws = score.raw + [scale.low for scale in scales[len(score.raw) :]]
    multipliers = score.multipliers or [scale.multiplier for scale in scales]
    contributions = []
    for scale, raw, multiplier in zip(scales, raws, multipliers, strict=True):
        width = scale.high - scale.low
        normalised = (raw - scale.low) / width if width else 0.0
        contributions.append(
            Contribution(
                weigher=scale.weigher,
                raw=raw,
                normalised=normalised,
                multiplier=multiplier,
                contribution=normalised * multiplier + 0.0,  # no negative zero
            )
        )
    return contributions
