"""Foreign guests in a registration: those of instances on other hosts, and the operation ``clean`` that removes them.

A guest is marked with the operation that brought it to its host. A *stranger* has a mark that the database does not
know: the database was restored from an older backup, or the record of the operation was pruned.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from roost.conductor.operation.reconcile import GuestFates, HomeAnswers, reconcile
from roost.conductor.operation.row_changes import make_due, replace_row
from roost.conductor.operation.step import body_of, withdraw_orders
from roost.model.names import uuid_bytes, uuid_text, valid_uuid_bytes
from roost.model.work.guest import COMPLETE_STATES, GuestReport
from roost.model.work.operation import HostCleanup
from roost.model.work.work_rows import AgentRow, MigrationRow, OperationRow, Put, StatusRow
from roost.ports import Commits, WorkReader


class Reconciliation(NamedTuple):
    """The decision about the guests in a registration."""

    fates: GuestFates
    strangers: tuple[bytes, ...]  # uuids of their instances
    incomplete: tuple[bytes, ...]  # the strangers with an incomplete guest


def reconcile_guests(
    reader: WorkReader,
    agent: AgentRow,
    guests: Sequence[GuestReport],
    *,
    uuids: Sequence[bytes],
    statuses: Mapping[bytes, StatusRow],
    migrations: Sequence[MigrationRow],
) -> Reconciliation:
    """Decide about the guests in a registration.

    Args:
        agent: as it registers.
        guests: as it reports them.
        uuids: of the instances to decide about.
        statuses, migrations: of these instances, as for ``reconcile``.
    """
    strangers = find_strangers(reader, agent.host, guests, statuses=statuses)
    fates = reconcile(
        agent.host,
        uuids,
        statuses=statuses,
        migrations=migrations,
        strangers=strangers,
        answers=find_answers(reader.operation_by_uuid(agent.run), fence=agent.fence),
    )
    complete = {uuid_bytes(guest.uuid) for guest in guests if guest.state in COMPLETE_STATES}
    return Reconciliation(fates, tuple(strangers), tuple(uuid for uuid in strangers if uuid not in complete))


def find_strangers(
    reader: WorkReader, host: str, guests: Iterable[GuestReport], *, statuses: Mapping[bytes, StatusRow]
) -> list[bytes]:
    """Return the strangers among the guests of known instances on other hosts.

    An incomplete guest counts too: a live migration may have completed it since the host looked at its guests.

    Args:
        host: the service in lower case.
        guests: as the host reports them.
        statuses: of their instances.
    """
    marks = {uuid_bytes(guest.uuid): uuid_bytes(guest.operation) for guest in guests}
    foreign = {uuid: marks[uuid] for uuid, status in statuses.items() if uuid in marks and status.host.lower() != host}
    return [uuid for uuid, mark in foreign.items() if mark is None or reader.operation_by_uuid(mark) is None]


def find_answers(cleanup: OperationRow | None, *, fence: int) -> HomeAnswers:
    """Return the answers of the homes of strangers, according to the operation ``clean`` of a registration.

    Args:
        fence: of the registration; the results of an earlier one no longer count.
    """
    body = None if cleanup is None or cleanup.kind != "clean" else body_of(cleanup, HostCleanup)
    return HomeAnswers() if body is None or body.fence != fence else answers_of(body)


def answers_of(body: HostCleanup) -> HomeAnswers:
    """Return the answers of the homes of strangers, as the body of an operation has them."""
    return HomeAnswers(
        replaced={valid_uuid_bytes(text): version for text, version in body.replaced.items()},
        kept=frozenset(map(valid_uuid_bytes, body.kept)),
        deferred={valid_uuid_bytes(text): version for text, version in body.deferred.items()},
    )


def plan_clean(
    current: Commits,
    reader: WorkReader,
    agent: AgentRow,
    *,
    reconciled: Reconciliation,
    before: AgentRow | None,
    now_s: float,
) -> list[Put]:
    """Return the rows to begin the operation ``clean`` of a registration, and to end an earlier one.

    The orders of the earlier one are withdrawn, because a guest to be destroyed may belong to the host by now.

    Args:
        reconciled: the decision about its guests.
        before: the agent before this registration; None: there was none.
    """
    operation, fates = reader.operation_by_uuid(agent.run), reconciled.fates
    old = operation if before is None or before.run == agent.run else reader.operation_by_uuid(before.run)
    work = _end_early(reader, old, now_s=now_s) if fates.is_clean or old is not operation else []
    if fates.is_clean:
        return work
    row = OperationRow(
        id=current.new_id("operation") if operation is None else operation.id,
        uuid=agent.run,
        kind="clean",
        step="query" if fates.query else "clean",
        due_at_s=now_s,
        body=msgspec.msgpack.encode(_body_of_clean(reader, agent, operation, reconciled=reconciled)),
        created_at_s=now_s,
        changed_at_s=now_s,
        version=1 if operation is None else operation.version + 1,
    )
    return [*work, Put(row, None if operation is None else operation.version)]


def _body_of_clean(
    reader: WorkReader,
    agent: AgentRow,
    operation: OperationRow | None,
    *,
    reconciled: Reconciliation,
) -> HostCleanup:
    """Return the body of the operation; after a repeated registration, it keeps the answers and the deadline."""
    fates = reconciled.fates
    numbers = [] if operation is None else [order.number for order in reader.orders_of(operation.id)]
    known = None if operation is None else body_of(operation, HostCleanup)
    before = known if known is not None and known.fence == agent.fence else None
    return HostCleanup(
        host=agent.host,
        fence=agent.fence,
        guests=tuple(map(uuid_text, fates.hold + fates.destroy + fates.query)),
        strangers=tuple(map(uuid_text, reconciled.strangers)),
        replaced={} if before is None else before.replaced,
        incomplete=tuple(map(uuid_text, reconciled.incomplete)),
        kept=() if before is None else before.kept,
        deferred={} if before is None else before.deferred,
        limit_at_s=0.0 if before is None or not fates.query else before.limit_at_s,
        after=max(numbers, default=0),
    )


def _end_early(reader: WorkReader, cleaning: OperationRow | None, *, now_s: float) -> list[Put]:
    """Withdraw the orders of an operation ``clean``, and make it due: it then ends by itself."""
    if cleaning is None or cleaning.outcome:
        return []
    return [replace_row(make_due(cleaning, now_s=now_s)), *withdraw_orders(reader.orders_of(cleaning.id))]
