"""The limits that filters set for processors, memory and disk of a host, checked for a guest."""

from collections.abc import Collection, Iterable, Mapping

from roost.errors import BadRequest, quote_value
from roost.model.evidence.decision import Limits
from roost.model.flavor import Flavor
from roost.model.work.guest_use import GuestAmounts

# Nova's name of a limit, also a field of ``GuestAmounts`` -> its resource classes, and its name in messages.
_COUNTED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "vcpu": (("VCPU", "PCPU"), "virtual CPUs"),
    "memory_mb": (("MEMORY_MB",), "MiB memory"),
    "disk_gb": (("DISK_GB",), "GiB disk"),
}


def flavor_amounts(flavor: Flavor) -> GuestAmounts:
    """Return the amounts that filters require for a guest: those of its flavor, including swap."""
    disk_gb = flavor.root_gb + flavor.ephemeral_gb + flavor.swap / 1024
    return GuestAmounts(vcpu=flavor.vcpus, memory_mb=flavor.memory_mb, disk_gb=disk_gb)


def amounts_in_use(allocations: Mapping[str, Mapping[str, int]], providers: Collection[str]) -> GuestAmounts:
    """Return a guest's use as filters count it: its allocations on the host's own providers.

    Args:
        allocations: provider uuid -> resource class -> amount.
        providers: uuids of the host's own providers; without sharing ones.
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


def find_shortfalls(limits: Limits, amounts: GuestAmounts, *, used: GuestAmounts) -> list[str]:
    """Describe each limit that a guest exceeds, one sentence each.

    Args:
        limits: upper bounds of use on the host; missing ones are not checked.
        amounts: amounts of the guest.
        used: sum of the amounts of all other guests.

    Raises:
        BadRequest: a limit is not a number.
    """
    shortfalls = []
    for name, (_, noun) in _COUNTED.items():
        limit = limits.get(name)
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            raise BadRequest(f"the limit of {name} is invalid: {quote_value(limit)} is not a number")
        needed, in_use = getattr(amounts, name), getattr(used, name)
        if limit - in_use < needed:
            shortfalls.append(
                f"the host lacks room for {needed:,.12g} {noun}: {in_use:,.12g} of {limit:,.12g} that it may give out "
                "are in use"
            )
    return shortfalls
