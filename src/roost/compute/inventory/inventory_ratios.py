"""Overcommit of what a host offers, and what it keeps for itself."""

from collections.abc import Iterable, Mapping

from roost.model.work.agent_terms import HostTerms

# Resource class -> the words of its settings. Whatever else there is cannot be shared, so its ratio is 1.
_CONFIGURED = {"VCPU": "cpu", "MEMORY_MB": "ram", "DISK_GB": "disk"}
_MIB_PER_GIB = 1024


def allocation_ratio(
    terms: HostTerms, resource_class: str, present: Iterable[Mapping[str, Mapping[str, float]]]
) -> float:
    """Return the overcommit of a resource class: that of the settings, else as Placement has it, else the initial one.

    Args:
        terms: of the host; a ratio of 0 in it counts as none.
        resource_class: of any kind; of those without settings the ratio is 1, whatever Placement has.
        present: inventories in Placement by resource class, of the provider itself first; then of those from which
            the class moves to it, whose ratio goes with it.
    """
    word = _CONFIGURED.get(resource_class)
    if word is None:
        return 1.0
    configured: float | None = getattr(terms, f"{word}_allocation_ratio")
    if configured:
        return configured
    for inventories in present:
        known = inventories.get(resource_class, {}).get("allocation_ratio")
        if known is not None:
            return float(known)
    initial: float = getattr(terms, f"initial_{word}_allocation_ratio")
    return initial


def reserve_of(terms: HostTerms, resource_class: str) -> int:
    """Return how much of a resource class a host keeps for itself, in the unit of the class, rounded up."""
    amounts = {
        "VCPU": terms.reserved_host_cpus,
        "MEMORY_MB": terms.reserved_host_memory_mb,
        "DISK_GB": -(-terms.reserved_host_disk_mb // _MIB_PER_GIB),
    }
    return amounts.get(resource_class, 0)


def offer_of(
    terms: HostTerms,
    resource_class: str,
    total: int,
    *,
    present: Iterable[Mapping[str, Mapping[str, float]]],
    kept: int = 0,
) -> dict[str, float]:
    """Return the inventory of a resource class as a host offers it.

    Args:
        terms, resource_class, present: as for ``allocation_ratio``.
        total: in the unit of the class, 1 or more.
        kept: how much the host keeps for itself on other providers already, in the same unit.
    """
    return {
        "total": total,
        "reserved": min(max(reserve_of(terms, resource_class) - kept, 0), total),
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": allocation_ratio(terms, resource_class, present),
    }
