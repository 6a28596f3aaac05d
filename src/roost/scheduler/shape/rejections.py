"""Rejections: the number of hosts that each check rejects, updated host by host between two passes."""

from collections.abc import Container, Sequence

from roost.engine.columns.types import Mask


class Rejections:
    """The first check that rejects each host: in the last pass or, for hosts changed since, at their last ``move``.

    Args:
        masks: bool, shape (hosts,), one per check: the verdicts of the pass.
        counts: number of hosts first rejected by each check in that pass.
    """

    def __init__(self, masks: Sequence[Mask], counts: list[int]) -> None:
        self._masks = masks
        self._passing = len(masks)  # the number after the last check
        self._checks: dict[int, int] = {}  # host row -> check, of the hosts touched since the pass
        self.counts = counts

    def move(self, row: int, *, was: int, now: int) -> None:
        """Move a touched host from its previous first rejecting check to the present one."""
        self._checks[row] = now
        if was != now:
            if was < self._passing:
                self.counts[was] -= 1
            if now < self._passing:
                self.counts[now] += 1

    def last(self, row: int, pool: Container[int]) -> int:
        """Return the check that rejected a host at its last verdict, or the number of checks.

        Args:
            row: the host.
            pool: some hosts of the same pass; they pass all checks, unless ``move`` has recorded a rejection.
        """
        check = self._checks.get(row)
        if check is not None:
            return check
        if row in pool:
            return self._passing
        for at, mask in enumerate(self._masks):
            if not mask.item(row):
                return at
        return self._passing
