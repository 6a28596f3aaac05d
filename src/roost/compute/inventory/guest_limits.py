"""Whether a guest is within what filters let its host give out of processors, memory and disk."""

from collections.abc import Collection, Iterable, Mapping

from roost.errors import BadRequest, quote_value
from roost.model.evidence.decision import Limits
from roost.model.flavor import Flavor
from roost.model.work.guest_use import GuestAmounts

# By Nova's name of the limit, which is that of a field, too: the classes that count, and what they are in reasons.
_COUNTED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "vcpu": (("VCPU", "PCPU"), "virtual CPUs"),
    "memory_mb": (("MEMORY_MB",), "MiB memory"),
    "disk_gb": (("DISK_GB",), "GiB disk"),
}


def flavor_amounts(flavor: Flavor) -> GuestAmounts:
    """Return what filters look for on a host for a guest: all that its flavor says, swap included."""
    disk_gb = flavor.root_gb + flavor.ephemeral_gb + flavor.swap / 1024
    return GuestAmounts(vcpu=flavor.vcpus, memory_mb=flavor.memory_mb, disk_gb=disk_gb)


def used_amounts(allocations: Mapping[str, Mapping[str, int]], providers: Collection[str]) -> GuestAmounts:
    """Return what filters count as in use by a guest: what it holds of a host's own providers.

    Args:
        allocations: provider uuid -> resource class -> amount.
        providers: uuids of those of the host; what others share with it is not its own.
    """
    own = [amounts for uuid, amounts in allocations.items() if uuid in providers]
    return GuestAmounts(
        **{
            name: sum(amounts.get(each, 0) for amounts in own for each in classes)
            for name, (classes, _) in _COUNTED.items()
        }
    )


def sum_of(parts: Iterable[GuestAmounts]) -> GuestAmounts:
    """Return the amounts of several guests together."""
    listed = [*parts]
    return GuestAmounts(**{name: sum(getattr(each, name) for each in listed) for name in _COUNTED})


def lack_of_amounts(limits: Limits, asked: GuestAmounts, *, used: GuestAmounts) -> list[str]:
    """Say what of a guest is beyond the limits of its host, a sentence each.

    Args:
        limits: what a host may have in use; what they do not name is not looked at.
        asked: what the guest asks for.
        used: what others have in use.

    Raises:
        BadRequest: a limit is no number.
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
