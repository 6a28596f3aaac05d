"""Injected faults: their rates are drawn once from the seed, then each fault by its rate."""

import random
from collections import Counter
from collections.abc import Callable

import msgspec

from roost.simulator.cluster.environment.event_queue import ProcessKilled


class FaultRates(msgspec.Struct, frozen=True, kw_only=True):
    """The probability of each fault, 0 to 1."""

    lost: float = 0.0  # messages, in either direction
    doubled: float = 0.0  # messages
    late: float = 0.0  # messages that take seconds
    refused: float = 0.0  # commits that fail and take no effect
    unheard: float = 0.0  # commits that take effect and report an error
    killed: float = 0.0  # servers, before or after a commit
    overtaken: float = 0.0  # commits before which another server takes a turn
    crashed: float = 0.0  # agents, before or after a write to the journal or the guest shelf
    driver: float = 0.0  # driver actions that fail or crash
    slow: float = 0.0  # driver actions that take seconds
    hung: float = 0.0  # driver actions that outlast the driver timeout
    partitioned: float = 0.0  # hosts, per second
    disabled: float = 0.0  # hosts, per second
    left: float = 0.0  # agents that sign off, per second


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
    """Draws faults from a random generator of its own, and counts them.

    Args:
        chance: determined by the seed.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.counts: Counter[str] = Counter()
        self.rates = draw_rates(chance)

    def end(self) -> None:
        """Inject no more faults."""
        self.rates = CALM

    @property
    def is_over(self) -> bool:
        """Whether faults have ended."""
        return self.rates is CALM

    def strikes(self, fault: str, *, per: float = 1.0) -> bool:
        """Draw whether a fault strikes now.

        Args:
            fault: a field of ``FaultRates``.
            per: factor on its rate.
        """
        rate: float = getattr(self.rates, fault) * per
        if rate <= 0.0 or self.chance.random() >= rate:
            return False
        self.counts[fault] += 1
        return True

    def kill(self, fault: str, die: Callable[[], None], *, per: float = 1.0) -> None:
        """Kill a process, if the fault strikes now.

        Raises:
            ProcessKilled: the fault strikes.
        """
        if self.strikes(fault, per=per):
            raise ProcessKilled(die)


def draw_rates(chance: random.Random) -> FaultRates:
    """Draw a rate for each fault: never, rarely or often."""
    levels = {name: chance.choice((CALM, _RARE, _RARE, _OFTEN)) for name in FaultRates.__struct_fields__}
    return FaultRates(**{name: getattr(level, name) for name, level in levels.items()})


class DriverChance(random.Random):
    """The random generator of a driver; it yields faults until the simulation is calm.

    Args:
        faults: draws the driver faults.
    """

    def __init__(self, faults: FaultInjector) -> None:
        super().__init__(0)
        self._faults = faults

    def random(self) -> float:
        """Return a number below 1 if a fault may strike, else 1."""
        return self._faults.chance.random() if self._faults.strikes("driver") else 1.0
