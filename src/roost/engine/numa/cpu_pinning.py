"""CPU pinning: dedicated processors for virtual CPUs, packed onto hardware threads."""

from collections.abc import Sequence

from roost.model.devices.numa import NumaCell
from roost.model.devices.topology import InstanceCell, Pins


def pin(host: NumaCell, cell: InstanceCell, *, reserved: int) -> Pins | None:
    """Choose dedicated processors for the pinned virtual CPUs of a cell.

    Args:
        host: totals and use of the host cell.
        cell: the instance cell; its ``threads`` is the policy for sibling threads.
        reserved: number of extra processors for emulator threads, >= 0.

    Returns:
        The processors, lowest numbers first; None if too few are free.
    """
    if not cell.pcpus and (not cell.cpus or cell.threads == "isolate" or reserved):
        return None  # As in Nova, a cell without dedicated processors cannot be isolated.
    free = host.free_pcpus
    siblings = host.siblings or [(cpu,) for cpu in host.pcpus]
    cores = [core for core in (sorted(free.intersection(each)) for each in siblings) if core]
    width = max(map(len, siblings), default=1)
    count = len(cell.pcpus)
    if cell.threads == "isolate":
        if width > 1 and set(host.pcpus) != set(host.cpus):
            return None
        chosen = _take_threads([core for core in cores if len(core) == width], count, threads=1)
        unused = [core for core in cores if chosen is not None and core[0] not in chosen]
        return _build_pins(cell, chosen, unused, reserved=reserved)
    widest = max(map(len, cores), default=0)
    least = 2 if cell.threads == "require" else 1
    for threads in range(widest, least - 1, -1):
        chosen = _take_threads([core for core in cores if len(core) >= threads], count, threads=threads)
        pins = _build_pins(cell, chosen, cores, reserved=reserved)
        if pins is not None:
            return pins
    if cell.threads == "require":
        return None
    return _build_pins(
        cell, _take_threads([[cpu] for core in cores for cpu in core], count, threads=1), cores, reserved=reserved
    )


def _take_threads(cores: Sequence[Sequence[int]], count: int, *, threads: int) -> list[int] | None:
    """Take the first processors of each core, up to ``threads``; None if they are too few."""
    found = [cpu for core in cores for cpu in core[:threads]]
    return found[:count] if len(found) >= count else None


def _build_pins(
    cell: InstanceCell, chosen: list[int] | None, cores: Sequence[Sequence[int]], *, reserved: int
) -> Pins | None:
    """Pair virtual CPUs with the chosen processors, and add the first free ones for the emulator."""
    if chosen is None:
        return None
    left = [cpu for core in cores for cpu in core if cpu not in chosen][:reserved]
    if len(left) < reserved:
        return None
    return Pins(pairs=tuple(zip(sorted(cell.pcpus), chosen, strict=True)), reserved=tuple(left))
