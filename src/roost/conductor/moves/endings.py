"""The ends of moves: the instance is on its target, stays on its source, or is handed over to its deletion."""

from collections.abc import Iterable

from roost.conductor.moves.migration import claim_back, migration_of, release_migration, reopen_group, update_migration
from roost.conductor.operation.liveness import require_same_agent
from roost.conductor.operation.reconcile import OPEN_MOVES
from roost.conductor.operation.step import Commit, Desk, View, end, release_lock, story_line, withdraw_orders
from roost.errors import Conflict
from roost.model.names import uuid_bytes
from roost.model.work.operation import InstanceBuild, InstanceMove, MoveSettlement
from roost.model.work.work_rows import MigrationRow


def finish_move(view: View, desk: Desk, body: InstanceMove, *, status: str, is_clean: bool) -> Commit:
    """Return the end of a move with the instance on the target.

    Args:
        status: of the instance from now on.
        is_clean: whether nothing of the instance is left on the source; otherwise the migration keeps the old
            allocations until the source is back and clean.
    """
    pick, source, move = body.picks[0], view.status.host, migration_of(view)
    kind = view.operation.kind
    # After an evacuation, no check is needed: a returning source does not run guests that are being evacuated.
    is_open = not is_clean and move.kind != "evacuate"
    return Commit(
        operation=end(view, body=body),
        writes=release_migration(desk.current, move) if is_clean else reopen_group(desk.current, move),
        work=(
            *withdraw_orders(view.orders),
            update_migration(
                view, "confirmed" if is_clean else "finished", target_host=pick.host, target_node=pick.node
            ),
            *(require_same_agent(view.agent(source)) if is_open else ()),
            *release_lock(
                view,
                status=status,
                fault="",
                cell=pick.cell,
                host=pick.host,
                node=pick.node,
                decision_uuid=uuid_bytes(body.decision_uuid),
                migration_uuid=other_migration(view) if is_clean else move.uuid,
            ),
            story_line(view, desk, f"{kind}.done", host=pick.host, source=source),
        ),
    )


def keep_on_source(view: View, desk: Desk, body: InstanceMove, *, problem: str, status: str = "") -> Commit:
    """Return the end of a move with the instance on its source, with its old allocations.

    Args:
        status: of the instance from now on; empty: it stays.
    """
    after = status or view.status.status
    fault = view.status.fault if view.status.status == "ERROR" and view.status.fault else problem
    move, event = migration_of(view), f"{view.operation.kind}.failed"
    try:
        writes = claim_back(desk.current, move) if move.uuid in desk.current.state.holders else ()
    except Conflict as error:
        # The migration keeps its allocations until the instance is deleted, or its host is back and clean.
        problem = f"{problem}; and {error}"
        return Commit(
            operation=end(view, body=body, problem=problem),
            work=(
                *withdraw_orders(view.orders),
                update_migration(view, "finished"),
                *release_lock(view, status="ERROR", fault=problem),
                story_line(view, desk, event, problem=problem),
            ),
        )
    return Commit(
        operation=end(view, body=body, problem=problem),
        writes=writes,
        work=(
            *withdraw_orders(view.orders),
            update_migration(view, "failed"),
            *release_lock(view, status=after, fault=fault, migration_uuid=other_migration(view)),
            story_line(view, desk, event, problem=problem),
        ),
    )


def hand_over(view: View, desk: Desk, body: InstanceMove | MoveSettlement | InstanceBuild) -> Commit:
    """Hand the instance over to the deletion, which releases the allocations of instance and migration."""
    return Commit(
        operation=end(view, body=body, problem="it was cancelled"),
        work=(
            *withdraw_orders(view.orders),
            *release_lock(view),
            story_line(view, desk, f"{view.operation.kind}.cancelled"),
        ),
    )


def other_migration(view: View) -> bytes | None:
    """Return the latest other migration of the instance that may still hold allocations."""
    own = migration_of(view).uuid
    return latest_open_move(each for each in view.migrations if each.uuid != own)


def latest_open_move(moves: Iterable[MigrationRow]) -> bytes | None:
    """Return the latest of the migrations that may still hold allocations."""
    found = [each for each in moves if each.status in OPEN_MOVES]
    return max(found, key=lambda each: (each.created_at_s, each.id)).uuid if found else None
