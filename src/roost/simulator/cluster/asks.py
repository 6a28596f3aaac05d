"""What people ask for in a simulation: a table with a line for each kind of operation."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from roost.conductor import accepting, changing, draining
from roost.conductor.accepting import MoveKind
from roost.conductor.moves import asked_again
from roost.conductor.presence import check_gone
from roost.conductor.remembered import request_of
from roost.conductor.step import Body
from roost.conductor.steps import STEPS
from roost.conductor.targets import away_from
from roost.model.flavor import Flavor
from roost.model.names import uuid_bytes, uuid_text
from roost.model.operation import Asked, Power, Settling, Status
from roost.model.request import Request
from roost.model.work import OperationRow, StatusRow
from roost.placement.current import Current
from roost.placement.plans import Plan
from roost.simulator.cluster.processes import Process

if TYPE_CHECKING:
    from roost.simulator.cluster.world import World

Accepted = Plan[OperationRow] | OperationRow
Deed = Callable[[Process], object]

_FLAVORS = tuple(Flavor(name=f"of {vcpus}", vcpus=vcpus, memory_mb=vcpus) for vcpus in (1, 1, 2, 3))
_COUNTS = (1, 1, 1, 2, 3, 5)
_HOPELESS = 0.05  # of requests: for more than any host has
_IN_GROUP, _WITHOUT_REGARD = 0.5, 0.2
_DOMAINS = ("a", "a", "b")  # of members of a server group whose policy asks for them
_AT_ONCE, _DISABLING, _LEFT_S = (1, 2, 3), 0.3, (20.0, 60.0)
_FORCED, _OF_BUSY = 0.15, 0.5  # of deletions


class Names(NamedTuple):
    """What somebody has named who asks, so that it counts once however often it is asked."""

    instance: str
    operation: bytes
    decision: str


Change = Callable[[Current, Process, Names], Accepted]


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of operation as people ask for it."""

    kind: str  # of ``conductor.steps.STEPS``; where it is not there, nobody asks for it
    weight: int  # how often, compared with the others
    make: Callable[["World", str], Deed | None]  # None: there is nothing to ask it of


def asks_there_are(kinds: Collection[str] = ()) -> Sequence[Ask]:
    """Return what can be asked for in this program.

    Args:
        kinds: no others; none: all of them.
    """
    return [ask for ask in ASKS if ask.kind in STEPS and (not kinds or ask.kind in kinds)]


def _build(world: "World", _kind: str) -> Deed:
    chance, key = world.chance, world.new_uuid()
    count = chance.choice(_COUNTS)
    flavor = Flavor(name="giant", vcpus=99, memory_mb=1) if chance.random() < _HOPELESS else chance.choice(_FLAVORS)
    group = chance.choice(world.groups) if chance.random() < _IN_GROUP else None
    asked = Request(
        flavor=flavor, count=count, instance_uuids=tuple(world.new_uuid() for _ in range(count)), group=group,
        hints={} if group is None else {"fault_domain": chance.choice(_DOMAINS)},
    )  # fmt: skip
    decision = world.new_uuid()

    def deed(process: Process) -> object:
        def task(current: Current) -> Accepted:
            return accepting.build(
                current, process.reader, asked, operation_uuid=_bytes(key), decision_uuid=decision, name="one",
                now_s=process.reader.now_s(),
            )  # fmt: skip

        return process.run(task)

    return deed


def _delete(world: "World", _kind: str) -> Deed | None:
    chance = world.chance
    busy = [row for row in world.statuses() if row.operation_id and row.task != "deleting"]
    status = chance.choice(busy) if busy and chance.random() < _OF_BUSY else _any(world, ())
    if status is None:
        return None
    key, uuid, is_forced = world.new_uuid(), uuid_text(status.uuid), chance.random() < _FORCED

    def deed(process: Process) -> object:
        def task(current: Current) -> Accepted:
            return accepting.delete(
                current, process.reader, uuid, operation_uuid=_bytes(key), now_s=process.reader.now_s(),
                is_forced=is_forced,
            )  # fmt: skip

        return process.run(task)

    return deed


def _act(*statuses: Status, body: Callable[[], Body]) -> Callable[["World", str], Deed | None]:
    """Return what asks for an act that needs no decision when it is accepted.

    Args:
        statuses: of instances that it is asked of, but for those of which it is asked without regard to that.
        body: what it is to remember.
    """

    def make(world: "World", kind: str) -> Deed | None:
        status = _any(world, statuses)
        if status is None:
            return None
        key, uuid = world.new_uuid(), uuid_text(status.uuid)
        asked: Asked = kind  # type: ignore[assignment]  # a line of the table names one

        def deed(process: Process) -> object:
            def task(current: Current) -> Accepted:
                return accepting.act(
                    current, process.reader, uuid, kind=asked, body=body(), operation_uuid=_bytes(key),
                    now_s=process.reader.now_s(),
                )  # fmt: skip

            return process.run(task)

        return deed

    return make


def _change(ask: Change, *statuses: Status) -> Callable[["World", str], Deed | None]:
    """Return what asks that an instance is changed where it is, or leaves its host for a while."""

    def make(world: "World", _kind: str) -> Deed | None:
        status = _any(world, statuses)
        if status is None:
            return None
        names = Names(uuid_text(status.uuid), _bytes(world.new_uuid()), world.new_uuid())
        return lambda process: process.run(lambda current: ask(current, process, names))

    return make


def _rebuild(current: Current, process: Process, names: Names) -> Accepted:
    return changing.rebuild(
        current, process.reader, names.instance, image=None, filters=process.roost.rules.filters,
        operation_uuid=names.operation, now_s=process.reader.now_s(),
    )  # fmt: skip


def _shelve(current: Current, process: Process, names: Names) -> Accepted:
    return changing.shelve(
        current, process.reader, names.instance, operation_uuid=names.operation, now_s=process.reader.now_s()
    )  # fmt: skip


def _offload(current: Current, process: Process, names: Names) -> Accepted:
    return changing.offload(
        current, process.reader, names.instance, operation_uuid=names.operation, now_s=process.reader.now_s()
    )  # fmt: skip


def _unshelve(current: Current, process: Process, names: Names) -> Accepted:
    return changing.unshelve(
        current, process.reader, names.instance, operation_uuid=names.operation, decision_uuid=names.decision,
        now_s=process.reader.now_s(),
    )  # fmt: skip


def _move(*statuses: Status) -> Callable[["World", str], Deed | None]:
    """Return what asks for a move."""

    def make(world: "World", kind: str) -> Deed | None:
        status = _any(world, statuses)
        if status is None or not status.host:
            return None
        names = Names(uuid_text(status.uuid), _bytes(world.new_uuid()), world.new_uuid())
        asked = _asked(world, kind, status)
        move_kind: MoveKind = kind  # type: ignore[assignment]  # as above
        is_verified = kind == "resize" or (kind == "migrate" and world.chance.random() < _WITHOUT_REGARD)

        def deed(process: Process) -> object:
            def task(current: Current) -> Accepted:
                plan = accepting.move(
                    current, process.reader, names.instance, kind=move_kind, asked=asked, is_verified=is_verified,
                    operation_uuid=names.operation, decision_uuid=names.decision, now_s=process.reader.now_s(),
                )  # fmt: skip
                if kind != "evacuate" or not isinstance(plan, Plan):
                    return plan
                return replace(plan, work=(*plan.work, *check_gone(process.reader, status)))

            return process.run(task)

        return deed

    return make


def _drain(world: "World", _kind: str) -> Deed:
    """Return what asks that a host is left; where nothing new is placed on it, somebody enables it again later."""
    chance, key = world.chance, world.new_uuid()
    host, at_once = chance.choice(world.machines).host, chance.choice(_AT_ONCE)
    is_disabling = chance.random() < _DISABLING
    if is_disabling:
        world.enable_later(host, after_s=chance.uniform(*_LEFT_S))

    def deed(process: Process) -> object:
        def task(current: Current) -> Accepted:
            return draining.drain(
                current, process.reader, host, at_once=at_once, is_disabling=is_disabling,
                operation_uuid=_bytes(key), now_s=process.reader.now_s(),
            )  # fmt: skip

        return process.run(task)

    return deed


def _asked(world: "World", kind: str, status: StatusRow) -> Request:
    """Return what the scheduler is asked for an instance that is to move."""
    stored = request_of(world.store.document, status)
    asked = away_from(stored, status) if kind in {"live_migrate", "evacuate"} else asked_again(stored, status)
    if kind == "resize":
        asked = asked_again(stored, status, may_stay=True)
        asked = msgspec.structs.replace(asked, flavor=world.chance.choice(_FLAVORS))
    assert asked.move is not None, "it is a move"
    move = msgspec.structs.replace(asked.move, migration_uuid=world.new_uuid())
    return msgspec.structs.replace(asked, move=move)


def _any(world: "World", statuses: Collection[str]) -> StatusRow | None:
    """Return an instance in one of some statuses, or in any that is not over; at times without regard to it."""
    known = [row for row in world.statuses() if row.status != "DELETED"]
    fitting = [row for row in known if row.status in statuses]
    is_any = not statuses or world.chance.random() < _WITHOUT_REGARD
    found = known if is_any else fitting
    return world.chance.choice(found) if found else None


def _bytes(uuid: str) -> bytes:
    body = uuid_bytes(uuid)
    assert body is not None, "it was made as one"
    return body


# A kind that is not in ``STEPS`` is left out, so that a line may be here before its steps are.
ASKS: Sequence[Ask] = (
    Ask(kind="build", weight=10, make=_build),
    Ask(kind="delete", weight=6, make=_delete),
    Ask(kind="start", weight=3, make=_act("SHUTOFF", body=Power)),
    Ask(kind="stop", weight=3, make=_act("ACTIVE", body=Power)),
    Ask(kind="reboot", weight=1, make=_act("ACTIVE", body=Power)),
    Ask(kind="reset", weight=2, make=_act("ERROR", body=Power)),
    Ask(kind="resize", weight=4, make=_move("ACTIVE", "SHUTOFF")),
    Ask(kind="confirm", weight=3, make=_act("VERIFY_RESIZE", body=Settling)),
    Ask(kind="revert", weight=3, make=_act("VERIFY_RESIZE", body=Settling)),
    Ask(kind="migrate", weight=4, make=_move("ACTIVE", "SHUTOFF")),
    Ask(kind="live_migrate", weight=4, make=_move("ACTIVE")),
    Ask(kind="evacuate", weight=6, make=_move("ACTIVE", "SHUTOFF", "ERROR")),
    Ask(kind="rebuild", weight=2, make=_change(_rebuild, "ACTIVE", "SHUTOFF", "ERROR")),
    Ask(kind="shelve", weight=3, make=_change(_shelve, "ACTIVE", "SHUTOFF")),
    Ask(kind="offload", weight=2, make=_change(_offload, "SHELVED")),
    Ask(kind="unshelve", weight=4, make=_change(_unshelve, "SHELVED", "SHELVED_OFFLOADED")),
    Ask(kind="drain", weight=1, make=_drain),
)
