"""The memory nodes that an instance asks for, and where on a host they go."""

from typing import Literal

import msgspec

CpuPolicy = Literal["dedicated", "shared", "mixed"]  # processors of its own, shared ones, or some of each
ThreadPolicy = Literal["prefer", "isolate", "require"]  # whether its processors are to be threads of one core
PageSize = int | Literal["small", "large", "any"]  # KiB, or whichever the host has of that kind


class InstanceCell(msgspec.Struct, frozen=True, kw_only=True):
    """One memory node of an instance."""

    id: int
    cpus: frozenset[int] = frozenset()  # virtual CPUs on shared processors
    pcpus: frozenset[int] = frozenset()  # virtual CPUs on processors of their own
    memory_mb: int
    page_size: PageSize | None = None
    policy: CpuPolicy | None = None
    threads: ThreadPolicy | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether it may have processors of its own."""
        return self.policy in ("dedicated", "mixed")


class InstanceTopology(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """All memory nodes of an instance."""

    cells: tuple[InstanceCell, ...]
    isolates_emulator: bool = False  # one processor more is for the threads of the emulator

    def reserved_cpus(self, position: int) -> int:
        """Return how many processors the emulator has beside the cell at a position."""
        return int(self.isolates_emulator and position == 0)


class NetworkNeeds(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """The networks to whose cards an instance is to be near."""

    physnets: frozenset[str] = frozenset()
    is_tunneled: bool = False


class Pins(msgspec.Struct, frozen=True, kw_only=True):
    """Which processors of a host a cell has for itself."""

    pairs: tuple[tuple[int, int], ...] = ()  # (virtual CPU, processor)
    reserved: tuple[int, ...] = ()  # processors for the threads of the emulator


class PlacedCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell of an instance on a cell of a host."""

    cell: InstanceCell
    host_cell: int  # its id
    page_size: int | None = None  # KiB; None: the host's smallest, or whatever it has
    pins: Pins = Pins()
