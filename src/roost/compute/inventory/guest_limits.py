"""The limits that filters set for processors, memory and disk of a host, checked for a guest."""

from collections.abc import Collection, Iterable, Mapping

from roost.errors import BadRequest, quote_value
from roost.model.evidence.decision import Limits
from roost.model.flavor import Flavor
from roost.model.work.guest_use import GuestAmounts

# By Nova's name of the limit, which is also that of a field: its classes, and its name in reasons.
_COUNTED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "vcpu": (("VCPU", "PCPU"), "virtual CPUs"),
    "memory_mb": (("MEMORY_MB",), "MiB memory"),
    "disk_gb": (("DISK_GB",), "GiB disk"),
}


def flavor_amounts(flavor: Flavor) -> GuestAmounts:
    """Return the amounts that filters require for a guest: those of its flavor, including swap."""
    disk_gb = flavor.root_gb + flavor.ephemeral_gb + flavor.swap / 1024
    return GuestAmounts(vcpu=flavor.vcpus, memory_mb=flavor.memory_mb, disk_gb=disk_gb)


def used_amounts(allocations: Mapping[str, Mapping[str, int]], providers: Collection[str]) -> GuestAmounts:
    """Return a guest's use as filters count it: its allocations on the host's own providers.

    Args:
        allocations: provider uuid -> resource class -> amount.
        providers: uuids of the host's own providers; shared ones do not count.
    """
    own = [amounts for uuid, amounts in allocations.items() if uuid in providers]
    return GuestAmounts(
        **{
            name: sum(amounts.get(each, 0) for amounts in own for each in classes)
            for name, (classes, _) in _COUNTED.items()
        }
    )


def sum_of(parts: Iterable[GuestAmounts]) -> GuestAmounts:
    """Return the sum of the amounts of guests."""
    listed = [*parts]
    return GuestAmounts(**{name: sum(getattr(each, name) for each in listed) for name in _COUNTED})


def lack_of_amounts(limits: Limits, asked: GuestAmounts, *, used: GuestAmounts) -> list[str]:
    """Describe each limit that a guest exceeds, one sentence each.

    Args:
        limits: upper bounds of use on the host; missing ones are not checked.
        asked: amounts of the guest.
        used: amounts of the others.

    Raises:
        BadRequest: a limit is not a number.
    """
    told = []
    for name, (_, noun) in _COUNTED.items():
        most = limits.get(name)
        if most is None:
            continue
        if isinstance(most, bool) or not isinstance(most, (int, float)):
            raise BadRequest(f"limits of {name} cannot be meant: {quote_value(most)} is no number")
        wanted, there = getattr(asked, name), getattr(used, name)
        if most - there < wanted:
            told.append(
                f"the host lacks room for {wanted:,.12g} {noun}: {there:,.12g} of {most:,.12g} that it may give out "
                "are in use"
            )
    return told
