"""The memory nodes of a host: which processors and how much memory belong together, and what of it is in use."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.names import AMOUNT_MAX

_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Processor = Annotated[int, Meta(ge=0, le=2**16 - 1)]


class MemoryPages(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Pages of one size in a cell."""

    size_kb: Annotated[Annotated[int, Meta(ge=1, le=AMOUNT_MAX)], Meta(description="KiB a page.")]
    total: Annotated[_Amount, Meta(description="How many there are.")]
    used: Annotated[_Amount, Meta(description="How many instances have.")] = 0
    reserved: Annotated[_Amount, Meta(description="How many no instance may have.")] = 0

    @property
    def free_kb(self) -> int:
        """What instances may still have, KiB."""
        return max(self.total - self.used - self.reserved, 0) * self.size_kb


class NumaCell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One memory node of a host with the processors that are near to it."""

    id: Annotated[_Amount, Meta(description="Its number on the host.")]
    cpus: Annotated[tuple[_Processor, ...], Meta(description="Processors that instances share.")] = ()
    pcpus: Annotated[tuple[_Processor, ...], Meta(description="Processors that one instance has for itself.")] = ()
    memory_mb: Annotated[_Amount, Meta(description="MiB.")]
    cpu_usage: Annotated[_Amount, Meta(description="Virtual CPUs of instances on the shared processors.")] = 0
    memory_usage: Annotated[_Amount, Meta(description="MiB that instances have.")] = 0
    pinned_cpus: Annotated[
        tuple[_Processor, ...], Meta(description="Processors that instances have for themselves.")
    ] = ()
    siblings: Annotated[
        tuple[tuple[_Processor, ...], ...], Meta(description="Hardware threads, those of one core together.")
    ] = ()
    mempages: Annotated[tuple[MemoryPages, ...], Meta(description="Pages by size; empty: the host does not say.")] = ()
    socket: Annotated[_Amount | None, Meta(description="The socket it belongs to; null: not known.")] = None
    physnets: Annotated[tuple[str, ...], Meta(description="Physical networks whose cards are near to it.")] = ()
    is_tunneled: Annotated[bool, Meta(description="Whether the card of tunneled networks is near to it.")] = False

    @property
    def free_pcpus(self) -> frozenset[int]:
        """Those of pcpus that no instance has."""
        return frozenset(self.pcpus).difference(self.pinned_cpus)

    @property
    def free_memory_mb(self) -> int:
        """Memory that no instance has, MiB; less than 0 where it is overcommitted."""
        return self.memory_mb - self.memory_usage


class NumaTopology(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, cache_hash=True
):
    """All memory nodes of a host."""

    cells: Annotated[tuple[NumaCell, ...], Meta(description="In the order of the host.")]

    def __post_init__(self) -> None:
        ids = [cell.id for cell in self.cells]
        if len(set(ids)) != len(ids):
            raise ValueError(f"two NUMA cells have one number: {sorted(ids)}")
