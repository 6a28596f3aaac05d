"""The size of group commits, adapted to waits for rows locked by other processes.

Two groups share a row the more likely, the larger they are, and a waiting commit holds its locks.
So large groups of several processes wait in chains. Small groups cost more round trips.
"""

# Share of a commit's time from which waits for locks halve the next groups.
_SHARE_MAX = 1 / 3


class GroupLimit:
    """The present upper bound of items in one commit."""

    def __init__(self) -> None:
        self._halvings = 0

    def size(self, maximum: int) -> int:
        """Return the present bound, 1..maximum.

        Args:
            maximum: the bound without waits, >= 1.
        """
        # After a change of the settings, the count may be too high for the maximum.
        self._halvings = min(self._halvings, maximum.bit_length() - 1)
        return maximum >> self._halvings

    def note(self, *, waited_s: float | None, elapsed_s: float) -> None:
        """Adapt the bound to one commit: halve it after long waits, else double it up to the maximum.

        Args:
            waited_s: its waits for rows locked by others; None: unknown, which changes nothing.
            elapsed_s: its whole duration.
        """
        if waited_s is None:
            return
        if waited_s > _SHARE_MAX * elapsed_s:
            self._halvings += 1
        elif self._halvings:
            self._halvings -= 1
