"""A slow, obvious NUMA placement: it tries every arrangement of cells, and counts processors."""

import itertools


def numa_topology(state, row, *, wanted, needs):
    """Return whether a host has NUMA cells for all cells of an instance."""
    if wanted is None:
        return True
    host = state.hosts.facts[row].numa
    if host is None:
        return False
    ratios = (state.hosts.columns["cpu_allocation_ratio"].view[row], 1.0)
    return any(True for _ in arrangements(host, wanted, needs=needs, ratios=ratios))


def arrangements(host, wanted, *, needs, ratios):
    """Yield all arrangements of an instance's cells on a host's cells.

    Args:
        ratios: the allocation ratios of shared processors and memory; None ignores their use.
    """
    for way in itertools.permutations(host.cells, len(wanted.cells)):
        if all(
            _holds(host_cell, cell, ratios, int(wanted.isolates_emulator and number == 0))
            for number, (host_cell, cell) in enumerate(zip(way, wanted.cells, strict=True))
        ) and (needs is None or _is_near(way, host.cells, needs)):
            yield way


def _holds(host, cell, ratios, reserved):
    return (
        _has_memory(host, cell)
        and (cell.policy == "dedicated" or _has_shared(host, cell, ratios))
        and (cell.policy not in ("dedicated", "mixed") or _has_dedicated(host, cell, reserved))
    )


def _has_memory(host, cell):
    sizes = sorted({pages.size_kb for pages in host.mempages})
    page_sizes = {None: sizes[:1], "small": sizes[:1], "large": sizes[1:], "any": sizes}.get(
        cell.page_size, [size for size in sizes if size == cell.page_size]
    )
    if not sizes and cell.page_size is None:
        is_pinned = cell.policy in ("dedicated", "mixed")
        return cell.memory_mb <= host.memory_mb - (host.memory_usage if is_pinned else 0)
    for size in page_sizes:
        (pages,) = (each for each in host.mempages if each.size_kb == size)
        count = pages.total
        if cell.page_size is not None or cell.policy in ("dedicated", "mixed"):
            count = pages.total - pages.used - pages.reserved
        if cell.memory_mb * 1024 % size == 0 and cell.memory_mb * 1024 // size <= count:
            return True
    return False


def _has_shared(host, cell, ratios):
    count = len(cell.cpus)
    if count > len(host.cpus) or ratios is None:
        return count <= len(host.cpus)
    cpu_ratio, memory_ratio = ratios
    return (
        host.cpu_usage + count <= len(host.cpus) * cpu_ratio
        and host.memory_usage + cell.memory_mb <= host.memory_mb * memory_ratio
    )


def _has_dedicated(host, cell, reserved):
    count = len(cell.pcpus)
    if not count and (not cell.cpus or cell.threads == "isolate" or reserved):
        return False
    free = [cpu for cpu in host.pcpus if cpu not in host.pinned_cpus]
    if count + reserved > len(free):
        return False
    width = max(len(core) for core in host.siblings)
    per_core = [len([cpu for cpu in core if cpu in free]) for core in host.siblings]
    if cell.threads == "isolate":
        if width > 1 and sorted(host.cpus) != sorted(host.pcpus):
            return False
        return per_core.count(width) >= count and sum(per_core) - count * width >= reserved
    if cell.threads == "require":
        return any(
            threads * len([have for have in per_core if have >= threads]) >= count for threads in range(2, width + 1)
        )
    return True


def _is_near(way, cells, needs):
    for name in needs.physnets:
        if any(name in cell.physnets for cell in cells) and not any(name in cell.physnets for cell in way):
            return False
    if needs.is_tunneled and any(cell.is_tunneled for cell in cells):
        return any(cell.is_tunneled for cell in way)
    return True
