"""Matchings in a bipartite graph of members and providers, updated during a search."""


class Matching:
    """The options of members, each in need of one place, and the number of places of each provider.

    A matching is a list with the provider of every member. Members before the current one are fixed; ``force``
    moves only later members. If places are the only constraint, a search that forces members in order meets no dead
    end.

    Source:
        H. W. Kuhn, The Hungarian method for the assignment problem, 1955 (augmenting paths).
    """

    __slots__ = ("_options", "_places")

    def __init__(self, *, options: list[int], places: list[int]) -> None:
        self._options = options  # bit mask of providers, one per member
        self._places = [*places, 0]  # one per provider; the last is a waiting room without places

    def find_perfect(self) -> list[int] | None:
        """Find a matching with a place for every member; None if none exists.

        >>> Matching(options=[0b11, 0b01], places=[1, 1]).find_perfect()
        [1, 0]
        >>> Matching(options=[0b01, 0b01], places=[1, 1]).find_perfect() is None
        True
        """
        waiting_room = len(self._places) - 1
        left = self._places[:]
        matched = []
        for options in self._options:
            bits = options
            while bits:
                provider = (bits & -bits).bit_length() - 1
                if left[provider] > 0:
                    left[provider] -= 1
                    matched.append(provider)
                    break
                bits &= bits - 1
            else:
                matched.append(waiting_room)
                if not self._relieve(matched, waiting_room, fixed=-1):
                    return None
                left = [places - matched.count(at) for at, places in enumerate(self._places)]
        return matched

    def force(self, matched: list[int], member: int, provider: int) -> list[int] | None:
        """Assign ``member`` to ``provider`` without moving the members before it.

        Returns:
            A new list; the same list if nothing changes; None if the other members cannot be served.
        """
        before = matched[member]
        if before == provider:
            return matched
        matched = matched[:]
        matched[member] = provider
        if matched.count(provider) <= self._places[provider]:
            return matched
        try:
            other = matched.index(provider, member + 1)
        except ValueError:
            return None  # Fixed members fill the provider.
        # The previous place of the member often serves the displaced one.
        if self._options[other] >> before & 1:
            matched[other] = before
            return matched
        return matched if self._relieve(matched, provider, fixed=member) else None

    def _relieve(self, matched: list[int], crowded: int, *, fixed: int) -> bool:
        """Move members after ``fixed`` until one of them leaves the crowded provider."""
        options, places = self._options, self._places
        came_from: dict[int, tuple[int, int]] = {}
        seen = 1 << crowded
        queue = [crowded]
        for provider in queue:
            for member in range(fixed + 1, len(matched)):
                if matched[member] != provider:
                    continue
                bits = options[member] & ~seen
                seen |= bits
                while bits:
                    target = (bits & -bits).bit_length() - 1
                    bits &= bits - 1
                    came_from[target] = (member, provider)
                    if matched.count(target) < places[target]:
                        while target != crowded:
                            mover, source = came_from[target]
                            matched[mover] = target
                            target = source
                        return True
                    queue.append(target)
        return False
