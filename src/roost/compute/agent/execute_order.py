"""Carry out orders on a host: admit the guest, call the driver, return the answer."""

import threading
from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from roost.compute.agent.agent_journal import Holding, Journal
from roost.compute.agent.queues import new_guest_of
from roost.compute.agent.tasks import Clean, Undo, Work
from roost.compute.driver import DRIVER_ERRORS, Driver
from roost.compute.driver_values import check_guest, check_prepared
from roost.compute.inventory.admission import change_of_pages
from roost.compute.inventory.host_use import HostUse, Size
from roost.errors import BadRequest, BuildAborted, BuildFailed, DriverNotReady, JournalLost, NotFound, first_line
from roost.model.names import is_text, uuid_form
from roost.model.work.guest import GuestReport, GuestSpec, TransferTarget
from roost.model.work.guest_use import GuestNeeds, GuestUse
from roost.model.work.orders import (
    PROBLEM_MAX,
    AbortMigration,
    Destroy,
    Discard,
    Finish,
    Inspect,
    LiveMigrate,
    Order,
    OrderAnswer,
    Power,
    Prepare,
    Reboot,
    Rebuild,
    Save,
    SendDisk,
    Settle,
    Spawn,
)
from roost.observe import log

T = TypeVar("T", GuestReport, TransferTarget)


class OrderExecutor:
    """Carries out tasks on one host. Several threads may use it at once, but only one per instance.

    Args:
        host: name of the service.
        run: uuid of the agent's run.
        driver: a started driver.
        journal: records the resources of guests.
        use_of: returns the use of a node by its name; raises KeyError for an unknown node.
    """

    def __init__(
        self, host: str, *, run: str, driver: Driver, journal: Journal, use_of: Callable[[str], HostUse]
    ) -> None:
        self._host, self._run, self._driver, self._journal = host, run, driver, journal
        self._use_of = use_of
        self._lock = threading.Lock()  # guards the resources of all guests: each admission reads those of all others

    def carry_out(self, task: Work | Undo | Clean) -> OrderAnswer:
        """Carry out a task and return the answer; an error of the driver is an answer, too.

        Raises:
            JournalLost: the result could not be recorded.
        """
        try:
            match task:
                case Work(order, is_resumed):
                    return self._carry_out_order(order, is_resumed=is_resumed)
                case Undo(order):
                    if isinstance(order.act, Discard) and order.instance is not None:
                        self._perform(order, order.instance)  # Repeat the Discard, which undoes other orders.
                    self._undo(order)
                case Clean(instance, action):
                    self._clean(instance, action)
        except JournalLost:
            raise
        except DRIVER_ERRORS as error:
            if isinstance(task, Work):
                return self._fail(task.order, error, is_resumed=task.is_resumed)
            log.fault(f"{type(task).__name__.lower()} on host {self._host}", error)
            return self._make_answer("aborted", f"{type(error).__name__}: {first_line(error)}")
        return self._make_answer("ok")

    # --- orders ---

    def _carry_out_order(self, order: Order, *, is_resumed: bool) -> OrderAnswer:
        instance = order.instance
        if instance is None:
            raise BadRequest("the order names no instance")
        act = order.act
        if isinstance(act, (Spawn, Rebuild, Finish)) and act.guest.uuid != instance:
            raise BadRequest(f"the order is about instance {instance}, and its guest is {act.guest.uuid}")
        prepared, saved = None, ""
        if not (is_resumed and self._is_completed(order, instance)):
            prepared, saved = self._perform(order, instance)
        if isinstance(act, Rebuild):
            self._settle(instance, order.operation)
        found = self._find_guest(instance, is_required=isinstance(act, Inspect))
        return OrderAnswer(run=self._run, outcome="ok", found=found, prepared=prepared, saved=saved)

    def _is_completed(self, order: Order, instance: str) -> bool:
        """Return whether an earlier process completed an order."""
        if not isinstance(order.act, (Spawn, Rebuild, Finish)):
            return False  # Other orders leave no mark on the guest; repeating them does no harm.
        found = self._inspect(instance)
        return found is not None and found.operation == order.operation and found.state in ("running", "stopped")

    def _perform(self, order: Order, instance: str) -> tuple[TransferTarget | None, str]:
        driver, operation, act = self._driver, order.operation, order.act
        match act:
            case Spawn(guest):
                driver.spawn(self._admit(guest, operation), operation)
            case Rebuild(guest):
                self._rebuild(guest, operation)
            case Prepare(guest):
                arriving = self._admit(guest, operation, is_move=True)
                target = check_prepared(driver.prepare(arriving, operation), guest)
                return msgspec.structs.replace(target, page_sizes=GuestUse(cells=arriving.cells).page_sizes), ""
            case Finish(guest):
                driver.finish(self._with_prepared(guest, operation), operation)
            case Destroy():
                driver.destroy(instance, operation)
                self._release(instance)
            case Discard(of, is_sparing):
                if not (is_sparing and self._runs(instance, of or operation)):
                    driver.discard(instance, of or operation)
                    self._revert(instance, of or operation)
            case Settle(of):
                driver.settle(instance, of or operation)
                self._settle(instance, of or operation)
            case Power(is_on):
                driver.power(instance, is_on=is_on)
            case Reboot():
                driver.power(instance, is_on=False)
                driver.power(instance, is_on=True)
            case SendDisk(to):
                driver.send_disk(instance, to)
            case LiveMigrate(to):
                if not driver.capabilities.can_live_migrate:
                    raise BuildAborted(f"guests on {self._host} cannot move while they run")
                self._check_pages(instance, to)
                driver.live_migrate(instance, to)
                self._release(instance)
            case AbortMigration():
                driver.abort_migration(instance)
            case Save():
                if not driver.capabilities.can_save:
                    raise BuildAborted(f"guests on {self._host} cannot be saved")
                saved = driver.save(instance)
                if not isinstance(saved, str) or not saved or not is_text(saved, length_max=255):
                    raise TypeError("save of the driver returned no id of an image")
                return None, saved
            case Inspect():
                pass  # The answer always contains the guest.
        return None, ""

    def _find_guest(self, instance: str, *, is_required: bool) -> GuestReport | None:
        try:
            return self._inspect(instance)
        except DRIVER_ERRORS:
            if is_required:
                raise
            return None  # The order has succeeded; its answer can do without a report.

    def _fail(self, order: Order, error: BaseException, *, is_resumed: bool) -> OrderAnswer:
        """Undo a failed order, and return its error as an answer.

        Args:
            is_resumed: whether an earlier process began it, and may have left a guest.
        """
        is_expected, found = isinstance(error, (BuildFailed, BuildAborted, DriverNotReady)), None
        if not is_expected:
            log.fault(f"order {order.id} on host {self._host}", error)
        try:
            self._undo(order, may_remain=is_resumed or not is_expected)
        except JournalLost:
            raise
        except DRIVER_ERRORS as other:
            log.fault(f"undoing order {order.id} on host {self._host}", other)
            found = new_guest_of(order)
        problem = str(error) if is_expected else f"{type(error).__name__}: {first_line(error)}"
        answer = self._make_answer("failed" if isinstance(error, (BuildFailed, DriverNotReady)) else "aborted", problem)
        return msgspec.structs.replace(answer, found=found)

    def _undo(self, order: Order, *, may_remain: bool = True) -> None:
        """Undo the effects of an order, unless a later order has taken them over.

        Args:
            order: the order to undo.
            may_remain: whether the driver may have left a guest.
        """
        instance = order.instance
        if instance is None:
            return
        if isinstance(order.act, Spawn):
            found = self._inspect(instance) if may_remain else None
            if found is not None and found.operation == order.operation:
                self._driver.destroy(instance, order.operation)
        elif isinstance(order.act, (Prepare, Finish)) and may_remain:
            self._driver.discard(instance, order.operation)
        elif isinstance(order.act, (Destroy, LiveMigrate, Rebuild, Discard)):
            found = self._inspect(instance)
            if found is None:
                self._release(instance)  # The agent may have died before it recorded the release.
            elif isinstance(order.act, Rebuild) and found.state == "building":
                self._driver.destroy(instance, order.operation)  # It replaced a lost guest.
                self._release(instance)
            elif isinstance(order.act, Rebuild):
                is_rebuilt = found.operation == order.operation
                (self._settle if is_rebuilt else self._revert)(instance, order.operation)
        if isinstance(order.act, (Spawn, Prepare)) or (isinstance(order.act, Finish) and may_remain):
            self._revert(instance, order.operation)

    def _runs(self, instance: str, operation: str) -> bool:
        """Return whether the guest of an operation runs."""
        found = self._inspect(instance)
        return found is not None and found.state == "running" and found.operation == operation

    def _rebuild(self, guest: GuestSpec, operation: str) -> None:
        """Rebuild a guest, or build it again if the host has lost it."""
        try:
            self._driver.rebuild(self._readmit(guest, operation), operation)
        except NotFound:
            found = self._inspect(guest.uuid)
            if found is not None and found.state != "building":
                raise
            self._driver.spawn(self._admit(guest, operation), operation)

    def _inspect(self, instance: str) -> GuestReport | None:
        """Return the driver's report of a guest."""
        found = check_guest(self._driver.inspect(instance))
        if found is not None and uuid_form(found.uuid) != uuid_form(instance):
            raise TypeError(f"inspect of the driver returned guest {found.uuid} instead of {instance}")
        return found

    def _clean(self, instance: str, action: str) -> None:
        if action == "destroy":
            self._driver.destroy(instance, self._run)
            self._release(instance)
        elif action == "pause":
            self._journal.pause(instance)
            self._driver.power(instance, is_on=False)
        else:
            self._driver.power(instance, is_on=True)
        if action != "pause":
            self._journal.resume(instance)

    # --- resources of guests ---

    def _admit(self, guest: GuestSpec, operation: str, *, is_move: bool = False, is_rebuild: bool = False) -> GuestSpec:
        """Assign the needed resources of a node to a guest, and return the guest with its resources.

        Args:
            is_move: whether the operation keeps the guest's present resources on the node, for an undo.
            is_rebuild: whether the guest keeps its devices and pieces.

        Raises:
            BuildFailed: the node lacks resources, or does not belong to the host.
        """
        size = Size(flavor=guest.flavor, allocations=guest.allocations)
        with self._lock:
            use, known = self._use_on(guest.node), self._journal.holdings(guest.uuid)
            mappings = {suffix: tuple(uuids) for suffix, uuids in use.mappings(guest).items()}
            needs = GuestNeeds(topology=guest.topology, pci=guest.pci, limits=guest.limits, mappings=mappings)
            # Resources assigned earlier by this operation are not kept: an undo must not restore them.
            is_first = not any((each.holder, each.operation) == (guest.uuid, operation) for each in known)
            rebuilding = operation if is_rebuild else ""
            if is_move and is_first:
                admission = use.claim_move(guest.uuid, needs, migration=operation, size=size, rebuilding=rebuilding)
            else:
                admission = use.claim(guest.uuid, needs, size=size, rebuilding=rebuilding)
            if admission.use is None:
                raise BuildFailed(admission.reason)
            own = Holding(
                node=guest.node, holder=guest.uuid, instance=guest.uuid, operation=operation, use=admission.use
            )
            others = [each for each in known if each.holder != guest.uuid]
            if is_move and is_first and not any(each.holder == operation for each in known):
                others += [
                    msgspec.structs.replace(each, holder=operation)
                    for each in known
                    if each.holder == guest.uuid and each.node == guest.node
                ]
            for each in known:
                if each.holder == guest.uuid and each.node != guest.node:
                    self._release_on_node(each)
            self._journal.hold(guest.uuid, [own, *others])
        return _with_resources(guest, admission.use)

    def _readmit(self, guest: GuestSpec, operation: str) -> GuestSpec:
        """Keep the resources of a guest during a rebuild; if it needs other cells, assign these in addition.

        Raises:
            BuildFailed: as for ``_admit``.
        """
        own = self._own_holding(guest.uuid, node=guest.node)
        if own is None or not self._use_on(guest.node).is_served(guest.uuid, guest.topology):
            return self._admit(guest, operation, is_move=True, is_rebuild=True)
        return _with_resources(guest, own.use)

    def _check_pages(self, instance: str, to: TransferTarget) -> None:
        """Refuse a live migration to memory pages of another size, if both sizes are known.

        Raises:
            BuildFailed: the page sizes differ.
        """
        own = self._own_holding(instance)
        if own is not None and to.page_sizes is not None:
            change = change_of_pages(own.use.page_sizes, to.page_sizes)
            if change:
                raise BuildFailed(change)

    def _own_holding(self, instance: str, *, node: str = "") -> Holding | None:
        """Return the resources of a guest, without those that operations keep for it."""
        known = self._journal.holdings(instance)
        return next((each for each in known if each.holder == instance and node in ("", each.node)), None)

    def _with_prepared(self, guest: GuestSpec, operation: str) -> GuestSpec:
        """Return a guest with the resources from its preparation."""
        for each in self._journal.holdings(guest.uuid):
            if each.holder == guest.uuid and each.node == guest.node and each.operation == operation:
                return _with_resources(guest, each.use)
        return self._admit(guest, operation, is_move=True)  # Undoing an earlier attempt released them.

    def _release(self, instance: str) -> None:
        """Release all resources of an instance, including those that operations keep for it."""
        with self._lock:
            known = self._journal.holdings(instance)
            self._journal.hold(instance, [])
            for each in known:
                self._release_on_node(each)

    def _revert(self, instance: str, operation: str) -> None:
        """Release the resources assigned to an instance by an operation, and restore those that it kept."""
        with self._lock:
            known = self._journal.holdings(instance)
            remaining: list[Holding] = []
            for each in known:
                if each.holder == operation:
                    if (use := self._find_use(each.node)) is not None:
                        use.hand_over(operation, instance)
                    remaining.append(msgspec.structs.replace(each, holder=instance))
                elif each.operation == operation:  # Held by the instance, or kept by a later move.
                    if not any(other.holder == operation and other.node == each.node for other in known):
                        self._release_on_node(each)
                else:
                    remaining.append(each)
            if remaining != known:
                self._journal.hold(instance, remaining)

    def _settle(self, instance: str, operation: str) -> None:
        """Release the resources that an operation kept for an undo."""
        with self._lock:
            known = self._journal.holdings(instance)
            remaining = [each for each in known if each.holder != operation]
            if remaining != known:
                for each in known:
                    if each.holder == operation:
                        self._release_on_node(each)
                self._journal.hold(instance, remaining)

    def _release_on_node(self, holding: Holding) -> None:
        """Release resources of a node, if the node was updated in this process."""
        use = self._find_use(holding.node)
        if use is not None:
            use.release(holding.holder)

    def _find_use(self, node: str) -> HostUse | None:
        """Return the use of a node; None before its first update, which reads the journal."""
        try:
            return self._use_of(node)
        except KeyError:
            return None

    def _use_on(self, node: str) -> HostUse:
        use = self._find_use(node)
        if use is None:
            raise BuildFailed(f"host {self._host} has no node {node}")
        return use

    def _make_answer(self, outcome: Literal["ok", "failed", "aborted"], problem: str = "") -> OrderAnswer:
        text = problem[:PROBLEM_MAX].encode("utf-8", "replace").decode().replace("\0", "?")
        return OrderAnswer(run=self._run, outcome=outcome, problem=text)


def _with_resources(guest: GuestSpec, use: GuestUse) -> GuestSpec:
    """Return a guest with its resources."""
    return msgspec.structs.replace(guest, cells=use.cells, devices=use.addresses, pieces=use.pieces)
