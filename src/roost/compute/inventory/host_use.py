"""The use of a host by each guest: memory nodes, devices, amounts, and pieces, which are resources with names."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from roost.compute.inventory.admission import Admission, admit
from roost.compute.inventory.guest_limits import amounts_in_use, find_shortfalls, flavor_amounts, sum_of
from roost.compute.inventory.node_facts import Pooled
from roost.compute.inventory.single_resources import Providers, choose, find_missing, names_of
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

_NO_USES: Mapping[str, GuestUse] = MappingProxyType({})
_NO_DEVICES = Pooled()


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """The amounts of a guest."""

    flavor: Flavor | None = None  # None: no flavor
    allocations: dict[str, dict[str, int]] = {}  # provider uuid -> resource class -> amount


_NO_SIZE = Size()
_NO_PROVIDERS: Providers = MappingProxyType({})


class HostUse:
    """The use of a host by its instances and migrations.

    A migration holds the use that its instance had before the move. The source host keeps this use.

    The total is always recomputed from the individual uses, so a release leaves the others unchanged.

    Args:
        facts: facts of the host without guests, from its driver.
        devices: addresses of these devices, to assign single devices; empty: the driver chooses the devices of a guest.
        instances: uses of guests, by uuid of the instance.
        migrations: uses that moving instances may return to, by uuid of the migration.
        is_packing: whether to prefer the fullest cells to the emptiest.
        providers: the host's own providers with their pieces, without sharing providers.
    """

    def __init__(
        self,
        facts: HostFacts,
        *,
        instances: Mapping[str, GuestUse] = _NO_USES,
        migrations: Mapping[str, GuestUse] = _NO_USES,
        is_packing: bool = False,
        providers: Providers = _NO_PROVIDERS,
        devices: Pooled = _NO_DEVICES,
    ) -> None:
        self._facts, self._providers, self._devices = facts, providers, devices
        self._uses = {**instances, **migrations}
        self._is_packing = is_packing

    @property
    def facts(self) -> HostFacts:
        """The facts of the host, with all use."""
        return _with_uses(self._facts, self._devices, self._uses)

    @property
    def uses(self) -> dict[str, GuestUse]:
        """The use of each instance and migration, by uuid."""
        return dict(self._uses)

    @property
    def missing_pieces(self) -> dict[str, list[str]]:
        """The names of used pieces that the host no longer has, by holder."""
        return find_missing(self._uses, self._providers)

    def update_facts(
        self, facts: HostFacts, *, providers: Providers = _NO_PROVIDERS, devices: Pooled = _NO_DEVICES
    ) -> None:
        """Replace the facts from the host's driver, without guests; all uses stay."""
        self._facts, self._providers, self._devices = facts, providers, devices

    def mappings(self, guest: GuestSpec) -> Mappings:
        """Return the providers of a guest's devices: from its decision, else from its allocations.

        Empty if the devices are in no inventory.
        """
        if not self._devices.pools:
            return UNMAPPED
        return guest.mappings or match_providers(guest.pci, guest.allocations, self._devices.pools)

    def claim(self, holder: str, needs: GuestNeeds, *, size: Size = _NO_SIZE, rebuilding: str = "") -> Admission:
        """Set the use of a guest; if it is refused, its previous use stays.

        Args:
            holder: uuid of the instance.
            needs, size: those of the guest.
            rebuilding: uuid of the rebuild of the guest; as a holder it has the guest's previous use; empty: none.

        Raises:
            BadRequest: the limits are invalid; nothing has changed.
        """
        return self._claim(self._uses, holder, needs, size=size, rebuilding=rebuilding)

    def claim_move(
        self, holder: str, needs: GuestNeeds, *, migration: str, size: Size = _NO_SIZE, rebuilding: str = ""
    ) -> Admission:
        """Set the use of a moving instance; its migration keeps the instance's previous use of this host, if any.

        Only a resize on the same host has a previous use. Both uses stay claimed until the resize is confirmed or
        reverted. A repeated call leaves the migration's use unchanged.

        Args:
            holder, needs, size, rebuilding: as for ``claim``.
            migration: uuid of the migration.

        Raises:
            BadRequest: as for ``claim``.
        """
        uses = self._uses if migration in self._uses else _hand_over(self._uses, holder, migration)
        return self._claim(uses, holder, needs, size=size, rebuilding=rebuilding)

    def is_served(self, holder: str, topology: InstanceTopology | None) -> bool:
        """Return whether a guest has exactly its needed cells; True on a host without cells."""
        if self._facts.numa is None:
            return True
        use, needed = self._uses.get(holder, GuestUse()), () if topology is None else topology.cells
        return [each.cell for each in use.cells] == [*needed] and all(
            topology is not None and len(each.pins.reserved) == topology.reserved_cpus(at)
            for at, each in enumerate(use.cells)
        )

    def hand_over(self, holder: str, successor: str) -> None:
        """Move the use of ``holder`` to ``successor``, replacing its use; if ``holder`` has none, do nothing.

        A departing instance hands over to its migration, and a reverted migration to its instance.
        """
        self._uses = _hand_over(self._uses, holder, successor)

    def release(self, holder: str) -> None:
        """Release the use of a holder, if any."""
        self._uses = _without(self._uses, holder)

    def _claim(
        self, uses: Mapping[str, GuestUse], holder: str, needs: GuestNeeds, *, size: Size, rebuilding: str
    ) -> Admission:
        """Set the use of a guest, beside other uses; if it is refused, change nothing.

        Args:
            rebuilding: holder of the guest's previous use, whose devices, pieces and amounts are the guest's own.
        """
        others = _without(uses, holder)
        other_uses = [use for uuid, use in others.items() if uuid != rebuilding]
        own = names_of(uses[each] for each in (holder, rebuilding) if each in uses)
        pieces = choose(size.allocations, self._providers, taken=names_of(other_uses), own=own)
        shortfalls = [*pieces.shortfalls]
        if size.flavor is not None:
            used = sum_of(each.amounts for each in other_uses)
            shortfalls += find_shortfalls(needs.limits, flavor_amounts(size.flavor), used=used)
        left = _without_devices(others, rebuilding)
        facts, devices = self._facts, self._devices  # Another thread may replace these attributes meanwhile.
        admission = admit(_with_uses(facts, devices, left), needs, shortfalls=shortfalls, is_packing=self._is_packing)
        if admission.use is None:
            return admission
        addresses = _addresses_of(admission.use, devices, left, before=uses.get(holder) or uses.get(rebuilding))
        held = amounts_in_use(size.allocations, self._providers)
        use = msgspec.structs.replace(admission.use, addresses=addresses, amounts=held, pieces=pieces.names)
        self._uses = {**others, holder: use}
        return Admission(use)


def _without(uses: Mapping[str, GuestUse], holder: str) -> dict[str, GuestUse]:
    return {uuid: use for uuid, use in uses.items() if uuid != holder}


def _hand_over(uses: Mapping[str, GuestUse], holder: str, successor: str) -> dict[str, GuestUse]:
    return {**_without(uses, holder), successor: uses[holder]} if holder in uses else dict(uses)


def _without_devices(uses: Mapping[str, GuestUse], holder: str) -> dict[str, GuestUse]:
    """Return all uses, one of them without its devices."""
    return {
        uuid: msgspec.structs.replace(use, devices=(), addresses=()) if uuid == holder else use
        for uuid, use in uses.items()
    }


def _addresses(uses: Mapping[str, GuestUse]) -> frozenset[str]:
    return frozenset(address for use in uses.values() for address in use.addresses)


def _addresses_of(
    use: GuestUse, devices: Pooled, others: Mapping[str, GuestUse], *, before: GuestUse | None
) -> tuple[str, ...]:
    """Return the addresses of devices for a guest; empty if the driver chooses them.

    Args:
        use: the use of the guest, with its number of devices per pool.
        devices: the pools of the host.
        others: uses of all other holders.
        before: the previous use; its devices are preferred.
    """
    taken = _addresses(others)
    previous = () if before is None else before.addresses
    chosen: list[str] = []
    for pool, addresses in zip(*devices, strict=True):
        needed = sum(each.count for each in use.devices if clear_count(each) == clear_count(pool))
        free = sorted((each for each in addresses if each not in taken), key=lambda each: each not in previous)
        chosen += free[:needed]
    return tuple(chosen)


def _with_uses(facts: HostFacts, devices: Pooled, uses: Mapping[str, GuestUse]) -> HostFacts:
    """Return the facts of a host with its guests."""
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
