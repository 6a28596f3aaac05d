"""The part of the fleet that one of several processes prefers."""

import msgspec


class FleetPart(msgspec.Struct, frozen=True):
    """The part of one process, defined by all processes that decide on the database.

    Rendezvous hashing of these numbers gives each host to one process.
    """

    own: int  # the deciding process
    processes: tuple[int, ...]  # ascending, with ``own``
    is_within: bool = False  # in a decision: whether it chose among the hosts of this part only

    def __post_init__(self) -> None:
        if self.own not in self.processes or list(self.processes) != sorted(set(self.processes)):
            raise ValueError(f"processes must be ascending and include {self.own}, got {self.processes}")


def choose_part(own: int, processes: frozenset[int]) -> FleetPart | None:
    """Return the part of a process; None: it decides alone, or does not take part yet."""
    if own not in processes or len(processes) < 2:  # two processes share a fleet
        return None
    return FleetPart(own, tuple(sorted(processes)))
