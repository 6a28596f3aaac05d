"""Invariants that hold after each event, with any faults."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import islice

import msgspec

from roost.compute.drivers.fake.guests import FakeGuest
from roost.conductor.operation.stored_request import group_of, request_of
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.change_memory import AppliedMove, Drain, PlanApplication
from roost.model.work.operation import Delete, HostCleanup
from roost.model.work.orders import Answer
from roost.model.work.work_rows import AgentRow, EventRow, MigrationRow, OperationRow, OrderRow, StatusRow
from roost.model.writes import CLASS_BITS, CLASS_MASK
from roost.simulator.cluster.environment.event_queue import InvariantBroken
from roost.simulator.cluster.environment.restored_backup import hosts_of_guest, image_name
from roost.simulator.cluster.machines import Machine
from roost.simulator.cluster.world import World
from roost.store.rules.row_cache import RowCache

CAPACITY = "no inventory is over its capacity"
USAGE = "used amounts are the sums of the allocations"
OWNERS = "every allocation has a living consumer"
LOCKS = "an instance is locked by at most one operation"
ONE_HOST = "no instance runs on two hosts"
CLAIMS = "a running instance keeps its allocations"
POLICIES = "policies of server groups hold"
GENERATIONS = "generations only grow"
IMAGES = "every shelved instance has its image"
MOVE_CLAIMS = "a move holds the resources to which its instance may return"
DRAIN_LIMIT = "a drain respects its limit of concurrent moves"
PLAN_LIMITS = "an applied plan respects its limits of concurrent moves"
PLAN_ORDER = "a planned move begins before the deadline, after the moves that it needs, and as planned"
PLAN_ENDS = "every planned move ends as made, or as failed or skipped with a reason"
SLOTS = "slots of server groups match their members"
CLEAN_HOSTS = "a host that counts as up has no guests of instances on other hosts"
ONLY_GUEST = "the only guest of an instance is destroyed only at the request of a user"
CURRENT_AGENT = "only the current agent can mark its host as clean"

OPEN_MOVES = frozenset({"moving", "finished", "left", "reverting"})
# Operations that destroy the guest of an instance, or replace it.
_DESTROYING_KINDS = frozenset({"delete", "shelve", "offload", "rebuild"})
_SHELVED_STATUSES = frozenset({"SHELVED", "SHELVED_OFFLOADED"})


class InvariantChecker:
    """Checks the rows of the database and the guests of the drivers, without servers and agents.

    Args:
        world: to check.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._checked = (-1, -1)
        self._generations: dict[object, int] = {}
        self._event_count = 0  # checked so far
        self._fences: dict[str, int] = {}  # fence of its agent, by host; only hosts up at the last check

    @property
    def _tables(self) -> RowCache:
        return self._world.store.tables

    def operations(self) -> Collection[OperationRow]:
        """Return all operations."""
        return self._tables.work[OperationRow].rows.values()

    def check(self) -> None:
        """Check everything that may have changed since the last call.

        Raises:
            InvariantBroken: an invariant does not hold.
        """
        version = (self._world.commits, self._world.shelf.changes)
        if version == self._checked:
            return
        if version[0] != self._checked[0]:
            check_amounts(self._tables)
            check_owners(self._tables)
            check_groups(self._tables)
            check_locks(self._tables)
            check_moves(self._tables)
            check_drains(self._tables)
            check_plans(self._world)
            self._check_generations()
            self._check_returned_hosts()
            self._check_story()
        self._check_guests()
        self._check_images()
        self._check_only_guests()
        self._checked = version

    def forget(self) -> None:
        """Forget what a restored database does not know: earlier generations, events and registrations."""
        self._checked, self._generations, self._fences = (-1, -1), {}, {}
        self._event_count = len(self._tables.work[EventRow].rows)

    def _check_generations(self) -> None:
        tables = self._tables
        current: dict[object, int] = {
            ("provider", key): stock.used for key, stock in tables.stocks.rows.items() if not key & CLASS_MASK
        }
        current |= {row.uuid: row.generation for row in tables.consumers.rows.values()}
        current |= {("agent", row.host): row.fence for row in tables.work[AgentRow].rows.values()}
        current |= {("status", row.id): row.version for row in tables.work[StatusRow].rows.values()}
        for key, number in current.items():
            if number < self._generations.get(key, 0):
                raise InvariantBroken(GENERATIONS, f"{key} went from {self._generations[key]} to {number}")
        self._generations = current

    def _check_images(self) -> None:
        images = {*self._world.shelf.images()}
        for status in self._tables.work[StatusRow].rows.values():
            uuid = uuid_text(status.uuid)
            if status.status not in _SHELVED_STATUSES or request_of(self._world.store.document, status).is_bfv:
                continue  # A volume-backed instance has no image.
            if uuid in self._world.restored.imageless:
                continue  # The instance was deleted or unshelved after the backup.
            if image_name(uuid) not in images:
                raise InvariantBroken(IMAGES, f"there is no image of {uuid}: {status}")

    def _check_only_guests(self) -> None:
        """Check that no instance has lost its guest since the restore of a backup."""
        world = self._world
        for uuid in sorted(world.restored.complete):
            hosts = [machine.host for machine in world.machines]
            if not hosts_of_guest(world.shelf, hosts, uuid) and not self._may_be_destroyed(uuid):
                raise InvariantBroken(ONLY_GUEST, f"{uuid} has no guest any more")

    def _may_be_destroyed(self, uuid: str) -> bool:
        """Return whether a user's request destroys the guest of an instance."""
        body = uuid_bytes(uuid)
        kinds = {row.kind for row in self.operations() if row.instance_uuid == body}
        return bool(kinds & _DESTROYING_KINDS)

    def _check_story(self) -> None:
        """Check the events of the story since the last call."""
        events = self._tables.work[EventRow].rows
        for event in islice(events.values(), self._event_count, None):
            if event.kind == "agent.ready":
                self._check_current_agent(self._tables.work[OperationRow].rows[event.operation_id])
        self._event_count = len(events)

    def _check_current_agent(self, operation: OperationRow) -> None:
        body = msgspec.msgpack.decode(operation.body, type=HostCleanup)
        agent = self._tables.work[AgentRow].rows[body.host]
        if agent.fence != body.fence:
            raise InvariantBroken(
                CURRENT_AGENT, f"registration {body.fence} marked {body.host} as clean, but {agent.fence} is current"
            )

    # --- guests ---

    def _check_returned_hosts(self) -> None:
        """Check the guests of hosts that have just become up."""
        agents = self._tables.work[AgentRow].rows
        up = {host: agent.fence for host, agent in agents.items() if agent.state == "ready"}
        for machine in self._world.machines:
            if up.get(machine.host) != self._fences.get(machine.host) and machine.host in up:
                self._check_clean(machine)
        self._fences = up

    def _check_clean(self, machine: Machine) -> None:
        for uuid in self._world.shelf.guests(machine.host):
            body = uuid_bytes(uuid)
            assert body is not None, "guests have instance uuids"
            status = self._tables.work[StatusRow].get(body)
            is_elsewhere = status is not None and not may_have_guest(machine.host, status, self._open_moves(body))
            if (
                is_elsewhere
                and not is_astray(self._world, uuid, machine)
                and not self._will_be_destroyed(uuid, machine)
                and not self._is_forced(body)
            ):
                raise InvariantBroken(CLEAN_HOSTS, f"{machine.host} is up, and has {uuid}: {status}")

    def _check_guests(self) -> None:
        running: dict[str, list[Machine]] = {}
        for machine in self._world.machines:
            if not is_up(self._tables, machine.host):
                continue
            for uuid, guest in self._world.shelf.guests(machine.host).items():
                if guest.state == "running":
                    running.setdefault(uuid, []).append(machine)
        for uuid, machines in running.items():
            if len(machines) > 1:
                self._check_one_host(uuid, machines)
            for machine in machines:
                self._check_claim(uuid, machine)

    def _check_one_host(self, uuid: str, machines: list[Machine]) -> None:
        hosts = [
            machine.host
            for machine in machines
            if not (self._will_be_destroyed(uuid, machine) or is_astray(self._world, uuid, machine))
        ]
        if len(hosts) > 1:
            raise InvariantBroken(ONE_HOST, f"{uuid} runs on {' and '.join(hosts)}")

    def _check_claim(self, uuid: str, machine: Machine) -> None:
        body = uuid_bytes(uuid)
        assert body is not None, "guests have instance uuids"
        if holds_on(self._tables, body, machine.uuid) or self._will_be_destroyed(uuid, machine):
            return
        if any(holds_on(self._tables, row.uuid, machine.uuid) for row in self._open_moves(body)):
            return
        if not self._is_forced(body) and not is_astray(self._world, uuid, machine):
            raise InvariantBroken(CLAIMS, f"{uuid} runs on {machine.host} and holds nothing there")

    def _will_be_destroyed(self, uuid: str, machine: Machine) -> bool:
        """Return whether all orders for this guest are withdrawn or failed, so that its agent will destroy it."""
        guest: FakeGuest = self._world.shelf.guests(machine.host)[uuid]
        body = uuid_bytes(guest.operation)
        operation = None if body is None else self._tables.work[OperationRow].find(0, body)
        orders = [
            row
            for row in self._tables.work[OrderRow].rows.values()
            if operation is not None
            and row.operation_id == operation.id
            and row.host == machine.host
            and row.action != "destroy"
        ]
        return bool(orders) and all(map(needs_undo, orders))

    def _open_moves(self, uuid: bytes) -> list[MigrationRow]:
        rows = self._tables.work[MigrationRow].rows.values()
        return [row for row in rows if row.instance_uuid == uuid and row.status in OPEN_MOVES]

    def _is_forced(self, uuid: bytes) -> bool:
        """Return whether a user forced the deletion of an instance."""
        return any(
            row.kind == "delete"
            and row.instance_uuid == uuid
            and msgspec.msgpack.decode(row.body, type=Delete).is_forced
            for row in self.operations()
        )


def is_astray(world: World, uuid: str, machine: Machine) -> bool:
    """Return whether a restored database does not know a guest: it, or its last operation, is from after the backup."""
    guest = world.shelf.guests(machine.host).get(uuid)
    return (
        world.restored.count > 0
        and guest is not None
        and ((uuid, machine.host) in world.restored.astray or not knows_operation(world, guest.operation))
    )


def knows_operation(world: World, uuid: str) -> bool:
    """Return whether the database knows an operation."""
    body = uuid_bytes(uuid)
    return body is not None and world.store.tables.work[OperationRow].find(0, body) is not None


def is_up(tables: RowCache, host: str) -> bool:
    """Return whether a host is up. A lost host may still run guests, although their instances run on other hosts."""
    agent = tables.work[AgentRow].get(host)
    return agent is not None and agent.state == "ready"


def may_have_guest(host: str, status: StatusRow, moves: Collection[MigrationRow]) -> bool:
    """Return whether a host that counts as up may have a guest of an instance.

    Args:
        moves: the open moves of the instance.
    """
    if any((move.kind, move.status, move.source_host) == ("evacuate", "moving", host) for move in moves):
        return False  # The instance may run elsewhere by now.
    if status.status == "DELETED" or status.host == host:
        return status.status != "DELETED"
    is_moving = any(
        host in {move.source_host, move.target_host}
        and (
            move.status in {"moving", "reverting"} or (move.kind in {"resize", "migrate"} and move.status == "finished")
        )
        for move in moves
    )
    return is_moving or (status.status == "BUILD" and not status.host)


def needs_undo(order: OrderRow) -> bool:
    """Return whether the effect of an order has to be undone."""
    if order.state == "answered":
        return msgspec.json.decode(order.answer, type=Answer).outcome != "ok"
    return order.state == "withdrawn"


def holds_on(tables: RowCache, consumer: bytes, provider: str) -> bool:
    """Return whether a consumer has an allocation on a provider."""
    row = tables.consumers.find(0, consumer)
    amounts = None if row is None else tables.holdings.get(row.id)
    return amounts is not None and any(
        provider_uuid(tables, inventory_id) == provider for inventory_id, _ in amounts.takes
    )


def provider_uuid(tables: RowCache, inventory_id: int) -> str:
    """Return the uuid of an inventory's provider."""
    row = tables.providers.get(inventory_id >> CLASS_BITS)
    assert row is not None, "every inventory has a provider"
    return uuid_text(row.uuid)


def check_amounts(tables: RowCache) -> None:
    """Check that allocations stay within capacity, and that used amounts are their sums."""
    allocated: Counter[int] = Counter()
    for holding in tables.holdings.rows.values():
        for inventory_id, amount in holding.takes:
            allocated[inventory_id] += amount
    for key, stock in tables.stocks.rows.items():
        if not key & CLASS_MASK:
            continue
        if allocated[key] > int((stock.total - stock.reserved) * stock.allocation_ratio):
            raise InvariantBroken(CAPACITY, f"{allocated[key]} of {stock.total} in inventory {key} are allocated")
        if allocated[key] != stock.used:
            raise InvariantBroken(
                USAGE, f"{allocated[key]} in inventory {key} are allocated, and {stock.used} count as used"
            )


def check_owners(tables: RowCache) -> None:
    """Check that each consumer is a living instance or an open move."""
    statuses, migrations = tables.work[StatusRow], tables.work[MigrationRow]
    for consumer in tables.consumers.rows.values():
        status, migration = statuses.get(consumer.uuid), migrations.get(consumer.uuid)
        if status is not None and status.status != "DELETED" and (status.host or status.operation_id):
            continue
        if migration is not None and migration.status in OPEN_MOVES:
            continue
        state = "it is unknown" if status is None else f"it is {status.status}"
        moved = "" if migration is None else f", and its move is {migration.status}"
        raise InvariantBroken(OWNERS, f"{uuid_text(consumer.uuid)} has allocations, and {state}{moved}")


def check_locks(tables: RowCache) -> None:
    """Check that open operations hold the locks of their instances, and ended operations none."""
    operations, statuses = tables.work[OperationRow], tables.work[StatusRow]
    for status in statuses.rows.values():
        holder = operations.get(status.operation_id) if status.operation_id else None
        if status.operation_id and (holder is None or holder.outcome):
            raise InvariantBroken(
                LOCKS, f"operation {status.operation_id} locks {uuid_text(status.uuid)}, and has ended"
            )
    for operation in operations.rows.values():
        if operation.outcome or operation.instance_uuid is None or operation.step == "waiting":
            continue
        row = statuses.get(operation.instance_uuid)
        # A forced deletion continues after the instance is gone.
        if row is None or (row.operation_id != operation.id and row.status != "DELETED"):
            raise InvariantBroken(
                LOCKS, f"operation {operation.id} is at {operation.step}, and has not locked its instance"
            )


def check_moves(tables: RowCache) -> None:
    """Check that open moves hold the source's resources once their instances have left."""
    for move in tables.work[MigrationRow].rows.values():
        is_there = move.status in {"left", "reverting"} or (move.status == "finished" and move.kind != "live")
        if is_there and tables.consumers.find(0, move.uuid) is None:
            uuid = uuid_text(move.instance_uuid)
            raise InvariantBroken(
                MOVE_CLAIMS, f"{uuid} left {move.source_host}, its move is {move.status}, and nothing is held there"
            )


def check_drains(tables: RowCache) -> None:
    """Check that a drain has at most as many open parts as its limit."""
    operations = tables.work[OperationRow].rows
    going = Counter(row.parent_id for row in operations.values() if row.parent_id and not row.outcome)
    for number, count in going.items():
        if operations[number].kind != "drain":
            continue
        at_once = msgspec.msgpack.decode(operations[number].body, type=Drain).at_once
        if count > at_once:
            raise InvariantBroken(
                DRAIN_LIMIT, f"operation {number} moves {count} instances at once; its limit is {at_once}"
            )


def check_plans(world: World) -> None:
    """Check the limits, the order and the ends of the moves of applied plans."""
    operations, migrations = world.store.tables.work[OperationRow].rows, world.store.tables.work[MigrationRow].rows
    plans = {row.id: row for row in operations.values() if row.kind == "apply"}
    if not plans:
        return
    parts: dict[tuple[int, bytes | None], list[OperationRow]] = {}
    for row in operations.values():
        if row.parent_id in plans:
            parts.setdefault((row.parent_id, row.instance_uuid), []).append(row)
    routes = {row.operation_id: (row.source_host, row.target_host) for row in migrations.values()}
    for number, plan in plans.items():
        body = msgspec.msgpack.decode(plan.body, type=PlanApplication)
        states = {move.number: move.state for move in body.moves}
        uses: Counter[tuple[str, str]] = Counter()
        for move in body.moves:
            part, *others = parts.pop((number, uuid_bytes(move.instance)), [None])
            problem = _problem_of_part(move, part, deadline_at_s=body.deadline_at_s, routes=routes)
            if others or problem or (part is not None and any(states[each] != "done" for each in move.after)):
                raise InvariantBroken(PLAN_ORDER, f"operation {number} made {move}: {problem or (part, others)}")
            if plan.outcome and not _is_ended(move, part):
                raise InvariantBroken(PLAN_ENDS, f"operation {number} ended as {plan.outcome} with {move}: {part}")
            if part is not None and not part.outcome:
                uses.update(_limits_of(world, move, part))
        if plan.outcome and (plan.outcome == "done") is not (set(states.values()) <= {"done"}):
            raise InvariantBroken(PLAN_ENDS, f"operation {number} ended as {plan.outcome}: {body}")
        limits = {"all": body.at_once, "host": body.per_host, "group": body.per_group}
        for (kind, name), count in uses.items():
            if count > limits[kind]:
                raise InvariantBroken(PLAN_LIMITS, f"operation {number} makes {count} moves at once in {kind} {name}")
    if parts:
        raise InvariantBroken(PLAN_ORDER, f"moves were made that are in no plan: {parts}")


def _problem_of_part(
    move: AppliedMove, part: OperationRow | None, *, deadline_at_s: float, routes: Mapping[int, tuple[str, str]]
) -> str:
    """Return what is wrong with the operation of a move; empty: nothing.

    Args:
        part: the operation; None: it did not begin.
        deadline_at_s: of the plan; 0: none.
        routes: source and target by operation; the target is empty until it is decided.
    """
    if part is None:
        return ""
    if 0 < deadline_at_s <= part.created_at_s:
        return f"it began at {part.created_at_s}, after the deadline {deadline_at_s}"
    source, target = routes.get(part.id, (move.source, ""))
    return "" if source == move.source and target in {"", move.target} else f"it goes from {source} to {target}"


def _is_ended(move: AppliedMove, part: OperationRow | None) -> bool:
    """Return whether a move is at its end, with a reason unless it was made.

    Args:
        part: its operation; None: it did not begin.
    """
    outcomes = {"done": "done", "failed": "failed", "skipped": ""}
    is_right = move.state in outcomes and (part is None or part.outcome == outcomes[move.state])
    return is_right and bool(move.problem) is (move.state != "done")


def _limits_of(world: World, move: AppliedMove, part: OperationRow) -> Iterator[tuple[str, str]]:
    """Yield the limits that count a move under way; its group is that of its instance."""
    yield "all", ""
    yield from (("host", name) for name in (move.source, move.target) if name)
    group = group_of(world.store.document, world.store.tables.work[StatusRow].rows[part.instance_uuid])
    if group is not None:
        yield "group", group


def check_groups(tables: RowCache) -> None:
    """Check that members of server groups obey their policy, and that slots match members.

    A migration holds a slot for the return of its instance, but is not a member.
    """
    members: dict[int, Counter[int]] = {}
    places: Counter[tuple[int, int]] = Counter()
    domains: dict[tuple[int, int], set[int]] = {}
    for row in tables.instances.rows.values():
        if row.group_id:
            places[row.group_id, row.scope] += 1
            domains.setdefault((row.group_id, row.scope), set()).add(row.holder)
            if tables.work[MigrationRow].get(tables.consumers.rows[row.consumer_id].uuid) is None:
                members.setdefault(row.group_id, Counter())[row.host_id] += 1
    for group_id, hosts in members.items():
        group = tables.groups.rows[group_id]
        if group.policy == "affinity" and len(hosts) > 1:
            raise InvariantBroken(POLICIES, f"members of the affinity group are on {format_hosts(hosts)}")
        if group.policy == "anti-affinity" and max(hosts.values()) > group.max_server_per_host:
            raise InvariantBroken(
                POLICIES, f"{max(hosts.values())} members share a host; the limit is {group.max_server_per_host}"
            )
    for (group_id, _), racks in domains.items():
        if tables.groups.rows[group_id].policy == "fault-domain" and len(racks) > 1:
            raise InvariantBroken(POLICIES, f"{len(racks)} domains of the group {group_id} share a rack")
    for seat in tables.seats.rows.values():
        count = places[seat.group_id, seat.scope]
        if seat.members != count:
            raise InvariantBroken(SLOTS, f"{seat.members} slots are taken in scope {seat.scope}, by {count} members")


def format_hosts(hosts: Mapping[int, int]) -> str:
    """Format host numbers for a message."""
    return ", ".join(f"host {number}" for number in sorted(hosts))
