"""The resource tracker: writes a node's inventories and use to Placement, and reports them to the server."""

import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, Protocol

import msgspec

from roost.compute.driver import Driver, read_resources
from roost.compute.driver_values import check_guests, check_nodes
from roost.compute.inventory.device_providers import CountedDevices, DeviceProviders
from roost.compute.inventory.guest_devices import add_addresses
from roost.compute.inventory.host_use import HostUse
from roost.compute.inventory.inventory_ratios import settings_ratios
from roost.compute.inventory.monitors import Monitors
from roost.compute.inventory.node_facts import Pooled, facts_of, pool_devices
from roost.compute.inventory.reshape import Reshaper, WrittenTree
from roost.compute.inventory.single_resources import pieces_in
from roost.compute.inventory.stale_allocations import Instances, judge
from roost.compute.providers.held_allocations import amounts_of
from roost.compute.report.report_client import ReportClient
from roost.errors import (
    BadSettings,
    Conflict,
    InUse,
    JournalLost,
    ReshapeFailed,
    ReshapeNeeded,
    RoostError,
    error_text,
    quote_value,
)
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.model.work.agent_terms import HostTerms, NodeResources
from roost.model.work.guest_use import GuestUse
from roost.observe import log


class NodeJournal(Protocol):
    """The durable records of a host's agent."""

    def node_uuids(self) -> Mapping[str, str]:
        """Return the uuids of all known nodes, by name."""

    def keep_node(self, node: str, uuid: str) -> None:
        """Record the uuid of a node; durable on return."""

    def forget_node(self, node: str) -> None:
        """Delete the record of a node."""

    def instances(self, node: str) -> Mapping[str, GuestUse]:
        """Return the uses of a node by instance, including empty ones."""

    def migrations(self, node: str) -> Mapping[str, GuestUse]:
        """Return the uses of a node by migration: each is the use of its instance before the move."""

    def name_devices(self, node: str, uses: Mapping[str, GuestUse]) -> None:
        """Record the addresses of devices by uuid of their instance or migration; durable on return."""


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an update of a node."""

    node: str
    uuid: str  # of its root provider
    facts: HostFacts  # with the use of guests
    is_reshaped: bool = False  # whether inventories and their allocations moved
    released: tuple[str, ...] = ()  # uuids of instances, deleted or moved, whose allocations were released


class Tracker:
    """Tracks the nodes of a host as its driver reports them; only one thread at a time may call ``update``.

    Args:
        host: name of the service.
        driver: the initialised driver of the host.
        report: the report client of the host.
        reshaper: a reshaper with the same driver and report client.
        journal: durable records of nodes and guests.
        monitors: measurements.
        instances: look-up of instances; None: release no allocations of deleted or moved instances.
        devices: PCI devices in Placement, the same object as in ``reshaper``; None: no devices in Placement.
        periodic_reshape: see ``ReshapeTerms``.
        is_packing: whether to prefer the fullest memory nodes to the emptiest.
        host_ip: address for guests; empty: unknown.
        rack: rack of the host; empty: unknown.
        terms: reserved amounts and overcommit of the host, for its report; the driver applies them; None: the defaults.
        new_uuid: returns the uuid of a new node.
    """

    def __init__(
        self,
        host: str,
        *,
        driver: Driver,
        report: ReportClient,
        reshaper: Reshaper,
        journal: NodeJournal,
        monitors: Monitors,
        instances: Instances | None = None,
        devices: DeviceProviders | None = None,
        periodic_reshape: Literal["die", "log"] = "die",
        is_packing: bool = False,
        host_ip: str = "",
        rack: str = "",
        terms: HostTerms | None = None,
        new_uuid: Callable[[], str] = lambda: str(uuids.uuid4()),
    ) -> None:
        self._host, self._driver, self._report, self._reshaper = host, driver, report, reshaper
        self._journal, self._monitors, self._instances = journal, monitors, instances
        self._periodic_reshape, self._is_packing = periodic_reshape, is_packing
        self._host_ip, self._rack = host_ip, rack
        self._fixed_ratios = settings_ratios(terms or HostTerms())
        self._new_uuid = new_uuid
        self._devices = devices if devices is not None and devices.is_on else None
        self._uses: dict[str, HostUse] = {}
        self._logged: dict[str, object] = {}  # value of the last logged event, by subject

    def update(self, node: str, *, is_startup: bool, is_disabled: bool | None = None) -> NodeReport | None:
        """Write a node to Placement, and return its report for the server.

        Args:
            node: name of the node.
            is_startup: whether the agent is starting, so that inventories may move; true until the first report.
            is_disabled: whether an operator has disabled the service; None: unknown.

        Returns:
            None: the update failed, and the log has the reason.

        Raises:
            ReshapeFailed: inventories must move and cannot; after any of these errors the agent must end.
            JournalLost: the node cannot be recorded.
            ReshapeNeeded: inventories must move, and the agent is not starting.
            InUse: at the start, an inventory to delete is in use.
            BadSettings: at the start, the node conflicts with its record.
        """
        try:
            return self._update(node, is_startup=is_startup, is_disabled=is_disabled)
        except Exception as error:  # A driver may raise anything; the next update may succeed.
            if self._is_deadly(error, is_startup=is_startup):
                log.event("agent_ends", host=self._host, node=node, problem=str(error))
                raise
            if isinstance(error, (RoostError, ValueError)):
                log.event("node_not_updated", host=self._host, node=node, problem=str(error))
            else:
                log.fault(f"update of node {node}", error)
            return None

    def use(self, node: str) -> HostUse:
        """Return the use of a node after its update.

        Raises:
            KeyError: the node was not updated.
        """
        return self._uses[node]

    def node_uuid(self, node: str, reported: str | None = None) -> str:
        """Return the uuid of a node, and record it; a new node gets a new uuid.

        Args:
            reported: uuid from its driver; None: the driver reports none.

        Raises:
            BadSettings: the reported uuid differs from the record, or is malformed.
        """
        known = self._journal.node_uuids().get(node)
        if reported is not None and uuid_bytes(reported) is None:
            raise BadSettings(f"node {node}", f"its driver reports {quote_value(reported)}, which is not a UUID")
        if known is not None and reported is not None and reported != known:
            raise BadSettings(f"node {node}", f"its driver reports uuid {reported}, but its recorded uuid is {known}")
        found = known or reported or self._new_uuid()
        if known is None:
            self._journal.keep_node(node, found)
        return found

    def drop_gone_nodes(self) -> list[str]:
        """Delete the providers of permanently removed nodes without allocations; return the names of these nodes.

        Nodes with allocations stay until a later call, and the reason is logged.

        Raises:
            JournalLost: the record of a node cannot be deleted.
        """
        try:
            here = check_nodes(self._driver.nodes())
            gone = [each for each in self._journal.node_uuids() if each not in here and self._driver.is_node_gone(each)]
            return [each for each in gone if self._is_dropped(each)]
        except JournalLost:
            raise
        except Exception as error:  # noqa: BLE001  # The driver may raise anything.
            problem = error_text(error)
            self._log_once("gone nodes", problem, "nodes_not_dropped", problem=problem)
            return []

    def _is_dropped(self, node: str) -> bool:
        """Delete the providers of a node that have no allocations; return whether none is left."""
        left = self._report.delete_resource_provider(self._journal.node_uuids()[node])
        if left:
            self._log_once(node, left, "node_left", node=node, providers=", ".join(left))
            return False
        self._journal.forget_node(node)
        self._uses.pop(node, None)
        log.event("node_dropped", host=self._host, node=node, problem="it is gone and has no allocations")
        return True

    def _is_deadly(self, error: Exception, *, is_startup: bool) -> bool:
        match error:
            case ReshapeFailed() | JournalLost():
                return True
            case ReshapeNeeded():
                return is_startup or self._periodic_reshape == "die"
            case InUse() | BadSettings():
                return is_startup
        return False

    def _update(self, node: str, *, is_startup: bool, is_disabled: bool | None) -> NodeReport:
        resources = read_resources(node, self._driver.resources(node))
        self._log_view(node, resources)
        uuid = self.node_uuid(node, resources.uuid)
        counted = self._count_devices(node, resources)
        written = self._reshaper.write(node, uuid, is_startup=is_startup, is_disabled=is_disabled, devices=counted)
        devices = Pooled()
        if self._devices is not None:
            providers_of = self._devices.providers(written.tree, node, counted.offered)
            devices = pool_devices(counted.offered.devices, providers=providers_of)
        facts = facts_of(
            resources,
            metrics=self._monitors.metrics(self._driver, node),
            host_ip=self._host_ip,
            rack=self._rack,
            pools=None if self._devices is None else devices.pools,
            fixed_ratios=self._fixed_ratios,
        )
        providers, use = pieces_in(written.tree, uuid), self._uses.get(node)
        if use is None:
            use = self._uses[node] = HostUse(
                facts,
                instances=self._journal.instances(node),
                migrations=self._journal.migrations(node),
                is_packing=self._is_packing,
                providers=providers,
                devices=devices,
            )
        else:
            use.update_facts(facts, providers=providers, devices=devices)
        if is_startup:
            _check_pieces(node, use)
        released = self._clean(node, uuid, written)
        return NodeReport(node=node, uuid=uuid, facts=use.facts, is_reshaped=written.is_reshaped, released=released)

    def _count_devices(self, node: str, resources: NodeResources) -> CountedDevices:
        """Return the devices of a node for Placement, with their holders; empty if devices are not in Placement.

        Raises:
            BadSettings: the devices conflict with the settings, or the devices of a guest are unknown.
        """
        if self._devices is None:
            return CountedDevices()
        uses = {**self._journal.instances(node), **self._journal.migrations(node)}
        named = add_addresses(node, uses, known=resources.pci_in_use)
        if named:
            self._journal.name_devices(node, named)
        holders = {holder: use.addresses for holder, use in (uses | named).items() if use.addresses}
        return CountedDevices(self._devices.find_offered(resources.pci_devices), holders)

    def _clean(self, node: str, uuid: str, written: WrittenTree) -> tuple[str, ...]:
        """Release the allocations of deleted and moved instances on a node; return their uuids.

        If the state of instances is unknown, leave all allocations for a later update.
        """
        if self._instances is None:
            return ()
        try:
            return self._release_untracked(self._instances, node, written.tree.get_provider_uuids(uuid))
        except Exception as error:  # noqa: BLE001  # The driver, which lists the guests, may raise anything.
            problem = error_text(error)
            log.event("allocations_not_cleaned", host=self._host, node=node, problem=problem)
            return ()

    def _release_untracked(self, instances: Instances, node: str, below: Sequence[str]) -> tuple[str, ...]:
        holders = {each for one in below for each in self._report.get_allocations_for_resource_provider(one)}
        # A guest uses its resources until it is destroyed.
        guests = (each.uuid for each in check_guests(self._driver.guests()))
        tracked = {*self._journal.instances(node), *self._journal.migrations(node), *guests}
        others = sorted(holders - tracked)
        standings = instances.standings(others) if others else {}
        judgment = judge(holders, tracked=tracked, standings=standings, host=self._host)
        for consumer, problem in judgment.doubtful.items():
            self._log_once(consumer, problem, "allocation_doubtful", node=node, consumer=consumer, problem=problem)
        deleted = [
            each
            for each in judgment.released
            if self._release(node, each, partial(self._report.delete_allocation_for_instance, each))
        ]
        return (*deleted, *self._release_moved(instances, node, judgment.moved, below=below))

    def _release_moved(
        self, instances: Instances, node: str, moved: Sequence[str], *, below: Sequence[str]
    ) -> list[str]:
        """Release the allocations that moved instances have on a node; return their uuids."""
        known = {each: self._report.get_allocs_for_consumer(each) for each in moved}
        # Read the standings again, after the allocations: an instance on its way back is busy by now. If its return
        # begins later, its allocations change, and the release conflicts.
        standings = instances.standings(moved) if moved else {}
        left = []
        for each in judge(moved, tracked=(), standings=standings, host=self._host).moved:
            held = amounts_of(known[each]["allocations"])
            if held and held.keys() <= {*below}:
                problem = f"is on host {standings[each].host}, and has allocations only here"
                self._log_once(each, problem, "allocation_doubtful", node=node, consumer=each, problem=problem)
            elif held and self._release(
                node, each, partial(self._report.remove_providers_from_allocation, each, known[each], below)
            ):
                left.append(each)
        return left

    def _release(self, node: str, consumer: str, release: Callable[[], bool]) -> bool:
        """Call the release of a consumer; return whether it succeeded."""
        try:
            release()
        except Conflict as error:  # The consumer has just changed; the next update tries again.
            log.event("allocation_kept", node=node, consumer=consumer, problem=str(error))
            return False
        log.event("allocation_released", node=node, consumer=consumer, problem="its instance is deleted or has moved")
        return True

    def _log_view(self, node: str, resources: NodeResources) -> None:
        self._log_once(
            node,
            resources,
            "node_resources",
            node=node,
            vcpus=resources.vcpus,
            vcpus_used=resources.vcpus_used,
            memory_mb=resources.memory_mb,
            memory_mb_used=resources.memory_mb_used,
            local_gb=resources.local_gb,
            local_gb_used=resources.local_gb_used,
            pci_devices=len(resources.pci_devices),
        )

    def _log_once(self, subject: str, value: object, event: str, **fields: str | float) -> None:
        """Log an event unless the last one of its subject had the same value."""
        if self._logged.get(subject) != value:
            self._logged[subject] = value
            log.write(event, {"host": self._host, **fields})


def _check_pieces(node: str, use: HostUse) -> None:
    """Refuse a node if the driver no longer names a piece in use: another guest could get it under a new name."""
    for holder, names in use.missing_pieces.items():
        raise BadSettings(f"node {node}", f"{holder} has {', '.join(names)}, which is missing now")
