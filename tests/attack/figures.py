"""Figures of an attack: its requests, and the measurements of an honest client."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Observations:
    """Measurements of a bystander: the number of responses of each kind, and the slowest of them."""

    decisions: int = 0
    decision_ms_max: float = 0.0
    healthz: int = 0
    healthz_ms_max: float = 0.0
    reads: int = 0
    read_ms_max: float = 0.0
    problems: tuple[str, ...] = ()  # unexpected responses


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of one attack."""

    name: str
    requests: int  # of the attacker
    statuses: Counter[int] = field(default_factory=Counter)  # of the responses to them
    observations: Observations
    rss_growth_mib: float  # peak memory of the server, minus its memory before

    def row(self) -> str:
        """Return a row of the table."""
        seen = self.observations
        return (
            f"{self.name:<32} {self.requests:>9,} {seen.decisions:>9,} {seen.decision_ms_max:>11.1f} "
            f"{seen.healthz_ms_max:>10.1f} {seen.read_ms_max:>8.1f} {self.rss_growth_mib:>8.0f}  {dict(self.statuses)}"
        )


HEADER = (
    f"{'attack':<32} {'requests':>9} {'decisions':>9} {'decision ms':>11} {'healthz ms':>10} {'read ms':>8} "
    f"{'RSS MiB':>8}  statuses"
)
