"""NUMA cells of a host: processors and memory that belong together, and their use."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.names import AMOUNT_MAX

_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Processor = Annotated[int, Meta(ge=0, le=2**16 - 1)]


class MemoryPages(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Pages of one size in a cell."""

    size_kb: Annotated[Annotated[int, Meta(ge=1, le=AMOUNT_MAX)], Meta(description="Size of a page in KiB.")]
    total: Annotated[_Amount, Meta(description="Number of pages.")]
    used: Annotated[_Amount, Meta(description="Number of pages that instances use.")] = 0
    reserved: Annotated[_Amount, Meta(description="Number of pages that instances must not use.")] = 0

    @property
    def free_kb(self) -> int:
        """Free memory for instances, KiB."""
        return max(self.total - self.used - self.reserved, 0) * self.size_kb


class NumaCell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A NUMA cell of a host: memory and the processors near it."""

    id: Annotated[_Amount, Meta(description="Number of the cell on the host.")]
    cpus: Annotated[tuple[_Processor, ...], Meta(description="Processors for shared use.")] = ()
    pcpus: Annotated[tuple[_Processor, ...], Meta(description="Processors for dedicated use.")] = ()
    memory_mb: Annotated[_Amount, Meta(description="Memory in MiB.")]
    cpu_usage: Annotated[_Amount, Meta(description="Virtual CPUs of instances on shared processors.")] = 0
    memory_usage: Annotated[_Amount, Meta(description="Memory of instances in MiB.")] = 0
    pinned_cpus: Annotated[tuple[_Processor, ...], Meta(description="Dedicated processors in use.")] = ()
    siblings: Annotated[tuple[tuple[_Processor, ...], ...], Meta(description="Hardware threads, grouped by core.")] = ()
    mempages: Annotated[tuple[MemoryPages, ...], Meta(description="Pages by size; empty: not reported.")] = ()
    socket: Annotated[_Amount | None, Meta(description="Socket of the cell; null: unknown.")] = None
    physnets: Annotated[tuple[str, ...], Meta(description="Physical networks of the network cards in this cell.")] = ()
    is_tunneled: Annotated[
        bool, Meta(description="Whether the network card for tunneled networks is in this cell.")
    ] = False

    @property
    def free_pcpus(self) -> frozenset[int]:
        """Dedicated processors without an instance."""
        return frozenset(self.pcpus).difference(self.pinned_cpus)

    @property
    def free_memory_mb(self) -> int:
        """Free memory, MiB; below 0 if overcommitted."""
        return self.memory_mb - self.memory_usage


class NumaTopology(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, cache_hash=True
):
    """All NUMA cells of a host."""

    cells: Annotated[tuple[NumaCell, ...], Meta(description="NUMA cells, in the order of the host's report.")]

    def __post_init__(self) -> None:
        ids = [cell.id for cell in self.cells]
        if len(set(ids)) != len(ids):
            raise ValueError(f"two NUMA cells have the same number: {sorted(ids)}")
