"""What goes wrong, how often: drawn from the seed once, and then again and again."""

import random
from collections import Counter
from collections.abc import Callable

import msgspec

from roost.simulator.cluster.environment.event_queue import ProcessKilled


class FaultRates(msgspec.Struct, frozen=True, kw_only=True):
    """How often each thing goes wrong, 0 to 1."""

    lost: float = 0.0  # messages, on either way
    doubled: float = 0.0  # messages
    late: float = 0.0  # messages that take seconds
    refused: float = 0.0  # commits that fail and take no effect
    unheard: float = 0.0  # commits that take effect and fail
    killed: float = 0.0  # servers, before or after a commit
    overtaken: float = 0.0  # commits before which another server does something
    crashed: float = 0.0  # agents, before or after a line of a journal or a driver's books
    driver: float = 0.0  # acts of drivers that fail or break
    slow: float = 0.0  # acts of drivers that take seconds
    hung: float = 0.0  # acts of drivers that take longer than anybody waits
    partitioned: float = 0.0  # hosts, a second
    disabled: float = 0.0  # hosts, a second
    left: float = 0.0  # agents that end on purpose, a second


_RARE = FaultRates(
    lost=0.02,
    doubled=0.02,
    late=0.02,
    refused=0.01,
    unheard=0.01,
    killed=0.002,
    overtaken=0.1,
    crashed=0.003,
    driver=0.1,
    slow=0.1,
    hung=0.01,
    partitioned=0.005,
    disabled=0.003,
    left=0.003,
)
_OFTEN = FaultRates(
    lost=0.15,
    doubled=0.15,
    late=0.1,
    refused=0.08,
    unheard=0.08,
    killed=0.01,
    overtaken=0.4,
    crashed=0.02,
    driver=0.4,
    slow=0.3,
    hung=0.05,
    partitioned=0.02,
    disabled=0.01,
    left=0.015,
)
CALM = FaultRates()


class FaultInjector:
    """Draws what goes wrong, from a chance of its own; and counts it.

    Args:
        chance: of the seed.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.counts: Counter[str] = Counter()
        self.rates = draw_rates(chance)

    def end(self) -> None:
        """Let nothing go wrong any more."""
        self.rates = CALM

    @property
    def is_over(self) -> bool:
        """Whether nothing goes wrong any more."""
        return self.rates is CALM

    def strikes(self, fault: str, *, per: float = 1.0) -> bool:
        """Say whether something goes wrong now.

        Args:
            fault: a field of ``Shares``.
            per: by which its share is multiplied.
        """
        share: float = getattr(self.rates, fault) * per
        if share <= 0.0 or self.chance.random() >= share:
            return False
        self.counts[fault] += 1
        return True

    def kill(self, fault: str, die: Callable[[], None], *, per: float = 1.0) -> None:
        """End a process, at times.

        Raises:
            Killed: this time.
        """
        if self.strikes(fault, per=per):
            raise ProcessKilled(die)


def draw_rates(chance: random.Random) -> FaultRates:
    """Return how often what goes wrong with a seed: some things not at all, some at times, some often."""
    levels = {name: chance.choice((CALM, _RARE, _RARE, _OFTEN)) for name in FaultRates.__struct_fields__}
    return FaultRates(**{name: getattr(level, name) for name, level in levels.items()})


class DriverChance(random.Random):
    """The chance that a driver draws its faults from, until nothing goes wrong any more.

    Args:
        faults: whose share of faults it follows.
    """

    def __init__(self, faults: FaultInjector) -> None:
        super().__init__(0)
        self._faults = faults

    def random(self) -> float:
        """Return a number that is below 1 only where a fault may strike."""
        return self._faults.chance.random() if self._faults.strikes("driver") else 1.0
