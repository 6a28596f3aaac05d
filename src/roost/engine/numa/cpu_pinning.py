"""Virtual CPUs on processors of their own, packed onto hardware threads."""

from collections.abc import Sequence

from roost.model.devices.numa import NumaCell
from roost.model.devices.topology import InstanceCell, Pins


def pin(host: NumaCell, wanted: InstanceCell, *, reserved: int) -> Pins | None:
    """Choose processors for the virtual CPUs of a cell that are to have their own.

    Args:
        host: what is there and what of it is taken.
        wanted: whose ``pcpus`` are placed; ``threads`` says whether on threads of one core.
        reserved: how many processors more the threads of the emulator get, >= 0.

    Returns:
        The processors, lowest numbers first; None where they are not to be had.
    """
    if not wanted.pcpus and (not wanted.cpus or wanted.threads == "isolate" or reserved):
        return None  # As Nova has it, a cell without processors of its own is no cell that could be isolated.
    free = host.free_pcpus
    siblings = host.siblings or [(cpu,) for cpu in host.pcpus]
    cores = [core for core in (sorted(free.intersection(each)) for each in siblings) if core]
    width = max(map(len, siblings), default=1)
    count = len(wanted.pcpus)
    if wanted.threads == "isolate":
        if width > 1 and set(host.pcpus) != set(host.cpus):
            return None
        chosen = _take_threads([core for core in cores if len(core) == width], count, threads=1)
        unused = [core for core in cores if chosen is not None and core[0] not in chosen]
        return _build_pins(wanted, chosen, unused, reserved=reserved)
    widest = max(map(len, cores), default=0)
    least = 2 if wanted.threads == "require" else 1
    for threads in range(widest, least - 1, -1):
        chosen = _take_threads([core for core in cores if len(core) >= threads], count, threads=threads)
        made = _build_pins(wanted, chosen, cores, reserved=reserved)
        if made is not None:
            return made
    if wanted.threads == "require":
        return None
    return _build_pins(
        wanted, _take_threads([[cpu] for core in cores for cpu in core], count, threads=1), cores, reserved=reserved
    )


def _take_threads(cores: Sequence[Sequence[int]], count: int, *, threads: int) -> list[int] | None:
    """Return the first processors of cores, so many of each; None where they are too few."""
    found = [cpu for core in cores for cpu in core[:threads]]
    return found[:count] if len(found) >= count else None


def _build_pins(
    wanted: InstanceCell, chosen: list[int] | None, cores: Sequence[Sequence[int]], *, reserved: int
) -> Pins | None:
    """Return the processors chosen, with the first of some cores that are left for the emulator."""
    if chosen is None:
        return None
    left = [cpu for core in cores for cpu in core if cpu not in chosen][:reserved]
    if len(left) < reserved:
        return None
    return Pins(pairs=tuple(zip(sorted(wanted.pcpus), chosen, strict=True)), reserved=tuple(left))
