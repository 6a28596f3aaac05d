"""One import: plan, commit and comparison."""

from collections.abc import Callable
from itertools import count

import msgspec

from roost.compat.upstream.import_memory import other_sources, read_memory
from roost.compat.upstream.import_writes import writes_of
from roost.compat.upstream.merge import ImportPlan, merge
from roost.compat.upstream.placement_world import World, world_of
from roost.compat.upstream.verify import ImportCheck, verify
from roost.errors import Conflict
from roost.model.writes import Item
from roost.placement.current import Current
from roost.ports import IdKind

# First identity of a dry run; such identities are never written.
_UNUSED = 2**40
_CONFLICTS_MAX = 10  # shown in an error


class ImportCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of providers, or of consumers."""

    created: int
    changed: int
    removed: int
    same: int
    ahead: int  # changed here since they were copied, so kept


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an import, or of a dry run."""

    source: str
    database: str  # name of the target, without a password
    is_dry_run: bool
    providers: ImportCounts
    consumers: ImportCounts
    verified: ImportCheck | None  # None: dry run


def run_import(current: Current, there: World, *, source: str, database: str, is_dry_run: bool) -> ImportReport:
    """Import all data of a source in one commit.

    Args:
        source: name of the source, the same in each import.
        database: name of the target, for the report.
        is_dry_run: whether to write nothing.

    Raises:
        Conflict: the import would overwrite local changes, or another process writes at the same time.
        BadRequest: the source has unsupported data.
    """
    current.refresh()
    plan = _plan(current, there, source)
    if is_dry_run:
        numbers = count(_UNUSED)
        writes_of(current, plan, there, source=source, first_id=next(numbers), new_id=lambda _: next(numbers))
        return _build_report(plan, None, source=source, database=database)
    create_count = len(plan.providers.create)
    if create_count:
        with current.reserve_in_order("provider", create_count) as first:
            plan = _plan(current, there, source)  # Another process may have written meanwhile.
            if len(plan.providers.create) != create_count:
                raise Conflict("nothing was imported: another process creates providers at the same time; try again")
            _commit(current, plan, there, source=source, first_id=first)
    else:
        _commit(current, plan, there, source=source, first_id=0)
    stored = Current(current.store)  # Read from the database, not from the updated columns.
    skip = [*plan.providers.ahead, *plan.consumers.ahead]
    return _build_report(plan, verify(there, world_of(stored.state), skip=skip), source=source, database=database)


def _plan(current: Current, there: World, source: str) -> ImportPlan:
    plan = merge(there, world_of(current.state), read_memory(current, source))
    if plan.conflicts:
        more = len(plan.conflicts) - _CONFLICTS_MAX
        text = "; ".join(plan.conflicts[:_CONFLICTS_MAX]) + (f"; and {more:,} more" if more > 0 else "")
        raise Conflict(f"nothing was imported: {text}{_source_advice(current, source)}")
    return plan


def _source_advice(current: Current, source: str) -> str:
    """Return advice about an import that names its source in another way than earlier ones; empty: none are others."""
    others = other_sources(current, source)
    if not others:
        return ""
    return f"; earlier imports are from {', '.join(others)}: if {source} is the same Placement, repeat that --from"


def _commit(current: Current, plan: ImportPlan, there: World, *, source: str, first_id: int) -> None:
    new_id: Callable[[IdKind], int] = current.new_id
    writes = writes_of(current, plan, there, source=source, first_id=first_id, new_id=new_id)
    if not writes:
        return
    refusal = current.commit([Item(writes=writes)])[0]
    if refusal is not None:
        raise Conflict(
            f"nothing was imported: the database refused {refusal.table or 'a write'} {refusal.key} ({refusal.kind}). "
            "Another process writes at the same time, or the import conflicts with the local data; try again"
        )


def _build_report(plan: ImportPlan, verified: ImportCheck | None, *, source: str, database: str) -> ImportReport:
    counts = [
        ImportCounts(
            created=len(work.create),
            changed=len(work.change),
            removed=len(work.remove),
            same=work.same,
            ahead=len(work.ahead),
        )
        for work in (plan.providers, plan.consumers)
    ]
    return ImportReport(
        source=source,
        database=database,
        is_dry_run=verified is None,
        providers=counts[0],
        consumers=counts[1],
        verified=verified,
    )
