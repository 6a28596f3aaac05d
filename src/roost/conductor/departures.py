"""How an instance leaves a host: for good, with something left there that goes later, or not at all."""

from roost.conductor.moves import joined, migration_of, moved_on, returned, settled
from roost.conductor.presence import is_gone
from roost.conductor.reconcile import OPEN_MOVES, is_held_by, is_left_by
from roost.conductor.rows import instead, later
from roost.conductor.step import Commit, Desk, View, ended, let_go, told, withdrawn
from roost.engine.state import State
from roost.errors import Conflict
from roost.model.journal import Write
from roost.model.names import uuid_bytes, uuid_text
from roost.model.operation import Move, Settling
from roost.model.work import AgentRow, MigrationRow, Put, StatusRow
from roost.placement.claims import release_of
from roost.ports import WorkReader

# So many of the moves of a host are read at once.
_PAGE = 500


def check_gone(reader: WorkReader, status: StatusRow) -> tuple[Put, ...]:
    """Return what makes the commit that rests on it fail where the agent of an instance's host is there by then.

    Raises:
        Conflict: it is there.
    """
    agent = reader.agent(status.host.lower())
    if not is_gone(agent):
        raise Conflict(
            f"the instance {uuid_text(status.uuid)} cannot evacuate: the agent of {status.host} is there; migrate it, "
            "or wait until the agent was not heard for service_down_time"
        )
    return witnessed(agent)


def witnessed(agent: AgentRow | None) -> tuple[Put, ...]:
    """Return what makes a commit fail where an agent has registered, or has gone, since it was read."""
    return () if agent is None else (instead(later(agent)),)


def gone_elsewhere(view: View, desk: Desk, body: Move, *, status: str, is_clean: bool) -> Commit:
    """Return the end of a move whose instance is on the first of its picks.

    Args:
        status: of the instance there.
        is_clean: whether nothing is left of it on its old host; else what it held there stays the migration's until the
            host comes back without it.
    """
    pick, source, move = body.picks[0], view.status.host, migration_of(view)
    kind = view.operation.kind
    # A host that comes back holds what is evacuated until that is decided, so nothing can run there by then.
    is_open = not is_clean and move.kind != "evacuate"
    return Commit(
        operation=ended(view, body=body),
        writes=settled(desk.current, move) if is_clean else joined(desk.current, move),
        work=(
            *withdrawn(view.orders),
            moved_on(view, "confirmed" if is_clean else "finished", target_host=pick.host, target_node=pick.node),
            *(witnessed(view.agent(source)) if is_open else ()),
            *let_go(
                view, status=status, fault="", cell=pick.cell, host=pick.host, node=pick.node,
                decision_uuid=uuid_bytes(body.decision_uuid),
                migration_uuid=other_migration(view) if is_clean else move.uuid,
            ),
            told(view, desk, f"{kind}.done", host=pick.host, source=source),
        ),
    )  # fmt: skip


def stayed(view: View, desk: Desk, body: Move, *, problem: str, status: str = "") -> Commit:
    """Return the end of a move whose instance stays where it was, and has again what it had.

    Args:
        status: of the instance from now on; empty: as it was.
    """
    after = status or view.status.status
    fault = view.status.fault if view.status.status == "ERROR" and view.status.fault else problem
    move, event = migration_of(view), f"{view.operation.kind}.failed"
    try:
        writes = returned(desk.current, move) if move.uuid in desk.current.state.holders else ()
    except Conflict as error:
        # What its migration holds is given back by whoever deletes it, or when its host has nothing of it any more.
        problem = f"{problem}; and {error}"
        return Commit(
            operation=ended(view, body=body, problem=problem),
            work=(
                *withdrawn(view.orders), moved_on(view, "finished"), *let_go(view, status="ERROR", fault=problem),
                told(view, desk, event, problem=problem),
            ),
        )  # fmt: skip
    return Commit(
        operation=ended(view, body=body, problem=problem),
        writes=writes,
        work=(
            *withdrawn(view.orders), moved_on(view, "failed"),
            *let_go(view, status=after, fault=fault, migration_uuid=other_migration(view)),
            told(view, desk, event, problem=problem),
        ),
    )  # fmt: skip


def cancelled(view: View, desk: Desk, body: Move | Settling) -> Commit:
    """Return the end that makes room for a deletion, which gives back what instance and migration hold."""
    return Commit(
        operation=ended(view, body=body, problem="it was cancelled"),
        work=(*withdrawn(view.orders), *let_go(view), told(view, desk, f"{view.operation.kind}.cancelled")),
    )


def leaving(reader: WorkReader, hosts: set[str]) -> list[MigrationRow]:
    """Return the moves by which instances left a host that was away, or are leaving it.

    Args:
        hosts: the service, in all letter cases that it is known by.
    """
    found: list[MigrationRow] = []
    for host in sorted(hosts):
        for status in ("moving", "finished", "left"):
            after_id = 0
            while page := reader.migrations(after_id=after_id, most=_PAGE, status=status, source_host=host):
                after_id = page[-1].id
                found += [each for each in page if is_left_by(each, host) or is_held_by(each, host)]
    return found


def forgotten(state: State, moves: list[MigrationRow], *, now_s: float) -> tuple[tuple[Write, ...], tuple[Put, ...]]:
    """Return what ends moves whose old host has nothing left of their instances: what they hold is given back."""
    holders = [state.holders[move.uuid] for move in moves if move.uuid in state.holders]
    over = tuple(instead(later(move, status="confirmed", changed_at_s=now_s)) for move in moves)
    return ((release_of(state, holders),) if holders else ()), over


def other_migration(view: View) -> bytes | None:
    """Return another migration of the instance that holds something still."""
    own = migration_of(view).uuid
    found = [each for each in view.migrations if each.uuid != own and each.status in OPEN_MOVES]
    return max(found, key=lambda each: each.id).uuid if found else None
