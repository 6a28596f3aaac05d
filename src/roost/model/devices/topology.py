"""NUMA topology of an instance, and its placement on host cells."""

from typing import Literal

import msgspec

CpuPolicy = Literal["dedicated", "shared", "mixed"]  # dedicated processors, shared ones, or both
ThreadPolicy = Literal["prefer", "isolate", "require"]  # policy for sibling hardware threads
PageSize = int | Literal["small", "large", "any"]  # KiB, or a class of sizes


class InstanceCell(msgspec.Struct, frozen=True, kw_only=True):
    """One NUMA cell of an instance."""

    id: int
    cpus: frozenset[int] = frozenset()  # virtual CPUs on shared processors
    pcpus: frozenset[int] = frozenset()  # virtual CPUs on dedicated processors
    memory_mb: int
    page_size: PageSize | None = None
    policy: CpuPolicy | None = None
    threads: ThreadPolicy | None = None

    @property
    def is_pinned(self) -> bool:
        """Whether the cell may have dedicated processors."""
        return self.policy in ("dedicated", "mixed")


class InstanceTopology(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """All NUMA cells of an instance."""

    cells: tuple[InstanceCell, ...]
    isolates_emulator: bool = False  # whether emulator threads get an extra processor

    def reserved_cpus(self, position: int) -> int:
        """Return the number of extra processors for emulator threads in the cell at a position."""
        return int(self.isolates_emulator and position == 0)


class NetworkNeeds(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Networks of an instance; it must be near their network cards."""

    physnets: frozenset[str] = frozenset()
    is_tunneled: bool = False


class Pins(msgspec.Struct, frozen=True, kw_only=True):
    """The dedicated processors of an instance cell."""

    pairs: tuple[tuple[int, int], ...] = ()  # (virtual CPU, processor)
    reserved: tuple[int, ...] = ()  # processors for emulator threads


class PlacedCell(msgspec.Struct, frozen=True, kw_only=True):
    """An instance cell on a host cell."""

    cell: InstanceCell
    host_cell: int  # id of the host cell
    page_size: int | None = None  # KiB; None: the host's smallest, or any
    pins: Pins = Pins()
