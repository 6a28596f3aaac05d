"""The search for the least number of hosts that serve a trace."""

from collections.abc import Callable, Sequence

from roost.simulator.lab.compact_trial import Trial

Try = Callable[[int], Trial]
# More hosts are not always better, so some smaller numbers than the one found are tried too.
_BELOW = 3
_STEP_SHARE = 64  # the first step is this part of the lower bound


class Search:
    """Finds the least number of hosts for several bounds on refused requests; each number is tried once.

    Args:
        try_hosts: tries a number of hosts; it may end the trial after more refused requests than the largest bound.
        bound: the least number to try, >= 1.
        limit: the largest number to try.
    """

    def __init__(self, try_hosts: Try, *, bound: int, limit: int) -> None:
        self._try_hosts = try_hosts
        self._bound = bound
        self._limit = limit
        self.trials: dict[int, Trial] = {}

    def find_all(self, refused_max: Sequence[int]) -> list[Trial | None]:
        """Return the trial with the fewest hosts for each bound on refused requests; None: the limit is too low."""
        return [self._find(bound) for bound in refused_max]

    def _find(self, refused_max: int) -> Trial | None:
        low, high, step = self._bound - 1, self._bound, max(1, self._bound // _STEP_SHARE)
        while high < self._limit and not self._serves(high, refused_max):
            low, high, step = high, min(high + step, self._limit), 2 * step
        if high > self._limit or not self._serves(high, refused_max):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self._serves(middle, refused_max):
                high = middle
            else:
                low = middle
        fewer = (high - less for less in range(_BELOW, 0, -1) if high - less >= self._bound)
        least = next((count for count in fewer if self._serves(count, refused_max)), high)
        return self.trials[least]

    def _serves(self, host_count: int, refused_max: int) -> bool:
        if host_count not in self.trials:
            self.trials[host_count] = self._try_hosts(host_count)
        trial = self.trials[host_count]
        return trial.is_finished and trial.refused <= refused_max
