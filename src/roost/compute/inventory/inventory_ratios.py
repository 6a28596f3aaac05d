"""Overcommit and reserves of a host's inventories."""

from collections.abc import Iterable, Mapping

from roost.model.work.agent_terms import HostTerms

# Resource class -> prefix of its settings. All other classes cannot be overcommitted, so their ratio is 1.
_CONFIGURED = {"VCPU": "cpu", "MEMORY_MB": "ram", "DISK_GB": "disk"}
_MIB_PER_GIB = 1024


def allocation_ratio(
    terms: HostTerms, resource_class: str, present: Iterable[Mapping[str, Mapping[str, float]]]
) -> float:
    """Return the allocation ratio of a class: from the settings, else from Placement, else the initial one.

    Args:
        terms: terms of the host; a ratio of 0 counts as not set.
        resource_class: any class; without settings its ratio is 1, whatever Placement has.
        present: inventories in Placement by class: those of the provider itself, then those of earlier providers of
            the class. A class keeps its ratio when it moves to this provider.
    """
    prefix = _CONFIGURED.get(resource_class)
    if prefix is None:
        return 1.0
    configured: float | None = getattr(terms, f"{prefix}_allocation_ratio")
    if configured:
        return configured
    for inventories in present:
        ratio = inventories.get(resource_class, {}).get("allocation_ratio")
        if ratio is not None:
            return float(ratio)
    initial: float = getattr(terms, f"initial_{prefix}_allocation_ratio")
    return initial


def settings_ratios(terms: HostTerms) -> dict[str, float]:
    """Return the ratios that the settings of an agent fix, by resource class; each of its reports restores them."""
    ratios = {name: getattr(terms, f"{prefix}_allocation_ratio") for name, prefix in _CONFIGURED.items()}
    return {name: float(ratio) for name, ratio in ratios.items() if ratio}


def reserve_of(terms: HostTerms, resource_class: str) -> int:
    """Return the reserved amount of a class on a host, in the unit of the class, rounded up."""
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
    reserved: int = 0,
) -> dict[str, float]:
    """Return a host's inventory of a class.

    Args:
        terms, resource_class, present: as for ``allocation_ratio``.
        total: in the unit of the class, >= 1.
        reserved: amount already reserved on other providers of the host, in the same unit.
    """
    return {
        "total": total,
        "reserved": min(max(reserve_of(terms, resource_class) - reserved, 0), total),
        "min_unit": 1,
        "max_unit": total,
        "step_size": 1,
        "allocation_ratio": allocation_ratio(terms, resource_class, present),
    }
