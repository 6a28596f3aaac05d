"""Who has which of a host's memory nodes, devices and pieces, and how much of the rest; and what is left."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from roost.compute.inventory.admission import Admission, admit
from roost.compute.inventory.guest_limits import flavor_amounts, lack_of_amounts, sum_of, used_amounts
from roost.compute.inventory.node_facts import Pooled
from roost.compute.inventory.single_resources import Providers, choose, missing, names_of
from roost.engine.numa.cell_usage import add_instance
from roost.engine.pci.device_usage import clear_count, subtract_devices
from roost.engine.pci.pools import UNMAPPED
from roost.engine.pci.provider_match import match_providers
from roost.model.allocation import Mappings
from roost.model.devices.topology import InstanceTopology
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.work.guest import GuestSpec
from roost.model.work.guest_use import GuestNeeds, GuestUse

_NOBODY: Mapping[str, GuestUse] = MappingProxyType({})
_ALIKE = Pooled()


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How much a guest takes."""

    flavor: Flavor | None = None  # None: nobody asks for any
    allocations: dict[str, dict[str, int]] = {}  # provider uuid -> resource class -> amount


_NO_SIZE = Size()
_NONE: Providers = MappingProxyType({})


class HostUse:
    """What guests have of a host: instances that are on it, and migrations, which keep what their instance left there.

    What is in use is always made anew from what each has, so giving back leaves what others have as it was.

    Args:
        facts: of the host without any guest, as its driver tells them.
        devices: the same devices one by one, each of which is given out by its address then; none: drivers choose
            among those that are alike.
        instances: what guests have, by the uuid of the instance.
        migrations: what instances that move can come back to, by the uuid of the migration.
        is_packing: whether cells with least left are preferred, rather than those with most.
        providers: of the host, with their pieces; what others share with it is not counted.
    """

    def __init__(
        self,
        facts: HostFacts,
        *,
        instances: Mapping[str, GuestUse] = _NOBODY,
        migrations: Mapping[str, GuestUse] = _NOBODY,
        is_packing: bool = False,
        providers: Providers = _NONE,
        devices: Pooled = _ALIKE,
    ) -> None:
        self._bare, self._providers, self._devices = facts, providers, devices
        self._uses = {**instances, **migrations}
        self._is_packing = is_packing

    @property
    def facts(self) -> HostFacts:
        """The facts of the host with all that is in use."""
        return _with_uses(self._bare, self._devices, self._uses)

    @property
    def uses(self) -> dict[str, GuestUse]:
        """What each has, by the uuid of its instance or migration."""
        return dict(self._uses)

    @property
    def missing_pieces(self) -> dict[str, list[str]]:
        """Who has single resources that the host has no more, and the names of these."""
        return missing(self._uses, self._providers)

    def tell(self, facts: HostFacts, *, providers: Providers = _NONE, devices: Pooled = _ALIKE) -> None:
        """Let the host be as its driver tells now, without any guest; what guests have stays theirs."""
        self._bare, self._providers, self._devices = facts, providers, devices

    def mappings(self, guest: GuestSpec) -> Mappings:
        """Return which providers serve the devices of a guest: as it was decided, else by what it holds.

        Nothing is said where devices are in no provider's inventory.
        """
        if not self._devices.pools:
            return UNMAPPED
        return guest.mappings or match_providers(guest.pci, guest.allocations, self._devices.pools)

    def claim(self, holder: str, needs: GuestNeeds, *, size: Size = _NO_SIZE, rebuilding: str = "") -> Admission:
        """Let a guest have what it needs, in place of what it has; where it may not, it keeps that.

        Args:
            holder: uuid of the instance.
            needs: what it wants.
            size: how much it takes.
            rebuilding: the operation that rebuilds it, and keeps what it had before; empty: none does.

        Raises:
            BadRequest: the limits cannot be meant; nothing has changed.
        """
        return self._claim(self._uses, holder, needs, size=size, rebuilding=rebuilding)

    def claim_move(
        self, holder: str, needs: GuestNeeds, *, migration: str, size: Size = _NO_SIZE, rebuilding: str = ""
    ) -> Admission:
        """Let an instance that moves have what it needs here, and its migration keep what it has here already.

        Only a resize on one host finds anything to keep, and then both are held until it is confirmed or reverted.
        Asked again, the migration keeps what it kept at first.

        Args:
            holder, needs, size, rebuilding: as for ``claim``.
            migration: uuid of the migration.

        Raises:
            BadRequest: as for ``claim``.
        """
        kept = self._uses if migration in self._uses else _hand_over(self._uses, holder, migration)
        return self._claim(kept, holder, needs, size=size, rebuilding=rebuilding)

    def is_served(self, holder: str, topology: InstanceTopology | None) -> bool:
        """Say whether a guest has just the cells that it wants; a host without cells gives none to anybody."""
        if self._bare.numa is None:
            return True
        use, wanted = self._uses.get(holder, GuestUse()), () if topology is None else topology.cells
        return [each.cell for each in use.cells] == [*wanted] and all(
            topology is not None and len(each.pins.reserved) == topology.reserved_cpus(at)
            for at, each in enumerate(use.cells)
        )

    def hand_over(self, holder: str, successor: str) -> None:
        """Let another have what one has, in place of what it had; nothing happens where that one has nothing.

        An instance that leaves hands over to its migration, and a migration that is reverted to its instance.
        """
        self._uses = _hand_over(self._uses, holder, successor)

    def give_back(self, holder: str) -> None:
        """Take from one all that it has, if it has anything."""
        self._uses = _without(self._uses, holder)

    def _claim(
        self, uses: Mapping[str, GuestUse], holder: str, needs: GuestNeeds, *, size: Size, rebuilding: str
    ) -> Admission:
        """Let a guest have what it needs beside others; where it may not, nothing changes.

        Args:
            rebuilding: who keeps what the guest had and is the same guest, so its devices, pieces and amounts are.
        """
        others = _without(uses, holder)
        strangers = [use for uuid, use in others.items() if uuid != rebuilding]
        own = names_of(uses[each] for each in (holder, rebuilding) if each in uses)
        pieces = choose(size.allocations, self._providers, taken=names_of(strangers), own=own)
        lacks = [*pieces.lacks]
        if size.flavor is not None:
            used = sum_of(each.amounts for each in strangers)
            lacks += lack_of_amounts(needs.limits, flavor_amounts(size.flavor), used=used)
        left = _without_devices(others, rebuilding)
        bare, devices = self._bare, self._devices  # Others may tell what the host has meanwhile.
        admission = admit(_with_uses(bare, devices, left), needs, lacks=lacks, is_packing=self._is_packing)
        if admission.use is None:
            return admission
        addresses = _addresses_of(admission.use, devices, left, before=uses.get(holder) or uses.get(rebuilding))
        held = used_amounts(size.allocations, self._providers)
        use = msgspec.structs.replace(admission.use, addresses=addresses, amounts=held, pieces=pieces.names)
        self._uses = {**others, holder: use}
        return Admission(use)


def _without(uses: Mapping[str, GuestUse], holder: str) -> dict[str, GuestUse]:
    return {uuid: use for uuid, use in uses.items() if uuid != holder}


def _hand_over(uses: Mapping[str, GuestUse], holder: str, successor: str) -> dict[str, GuestUse]:
    return {**_without(uses, holder), successor: uses[holder]} if holder in uses else dict(uses)


def _without_devices(uses: Mapping[str, GuestUse], holder: str) -> dict[str, GuestUse]:
    """Return what each has, but the devices of one."""
    return {
        uuid: msgspec.structs.replace(use, devices=(), addresses=()) if uuid == holder else use
        for uuid, use in uses.items()
    }


def _addresses(uses: Mapping[str, GuestUse]) -> frozenset[str]:
    return frozenset(address for use in uses.values() for address in use.addresses)


def _addresses_of(
    use: GuestUse, devices: Pooled, others: Mapping[str, GuestUse], *, before: GuestUse | None
) -> tuple[str, ...]:
    """Return the addresses of the devices that a guest gets, where they are given out by these.

    Args:
        use: what it gets of each pool.
        devices: the pools.
        others: what all others have.
        before: what it had, and would rather keep.
    """
    taken = _addresses(others)
    had = () if before is None else before.addresses
    chosen: list[str] = []
    for pool, addresses in zip(*devices, strict=True):
        wanted = sum(each.count for each in use.devices if clear_count(each) == clear_count(pool))
        free = sorted((each for each in addresses if each not in taken), key=lambda each: each not in had)
        chosen += free[:wanted]
    return tuple(chosen)


def _with_uses(facts: HostFacts, devices: Pooled, uses: Mapping[str, GuestUse]) -> HostFacts:
    """Return the facts of a host with guests on it."""
    numa = facts.numa
    for use in uses.values():
        if numa is not None and use.cells:
            numa = add_instance(numa, use.cells)
    taken = _addresses(uses) if devices.pools else frozenset()
    pools = tuple(
        msgspec.structs.replace(pool, count=sum(each not in taken for each in addresses))
        for pool, addresses in zip(*devices, strict=True)
    )
    unnamed = [pool for use in uses.values() if not (pools and use.addresses) for pool in use.devices]
    return msgspec.structs.replace(facts, numa=numa, pci_pools=subtract_devices(pools or facts.pci_pools, unnamed))
