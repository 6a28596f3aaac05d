"""Foreign guests in a registration: those of instances on other hosts, and the operation ``clean`` that removes them.

A guest is marked with the operation that brought it to its host. A *stranger* has a mark that the database does not
know: the database was restored from an older backup, or the record of the operation was pruned.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from roost.conductor.operation.reconcile import GuestFates, reconcile
from roost.conductor.operation.row_changes import make_due, replace_row
from roost.conductor.operation.step import body_of, withdraw_orders
from roost.model.names import uuid_bytes, uuid_text
from roost.model.work.guest import COMPLETE_STATES, GuestReport
from roost.model.work.operation import HostCleanup
from roost.model.work.work_rows import AgentRow, MigrationRow, OperationRow, Put, StatusRow
from roost.ports import Commits, WorkReader


def reconcile_guests(
    reader: WorkReader,
    agent: AgentRow,
    guests: Sequence[GuestReport],
    *,
    uuids: Sequence[bytes],
    statuses: Mapping[bytes, StatusRow],
    migrations: Sequence[MigrationRow],
) -> tuple[GuestFates, list[bytes]]:
    """Return the fates of the guests in a registration, and the strangers among them.

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
        replaced=find_replacements(reader.operation_by_uuid(agent.run), fence=agent.fence),
    )
    return fates, strangers


def find_strangers(
    reader: WorkReader, host: str, guests: Iterable[GuestReport], *, statuses: Mapping[bytes, StatusRow]
) -> list[bytes]:
    """Return the strangers among the complete guests of known instances on other hosts.

    Args:
        host: the service in lower case.
        guests: as the host reports them.
        statuses: of their instances.
    """
    complete = {uuid_bytes(guest.uuid): guest for guest in guests if guest.state in COMPLETE_STATES}
    foreign = {
        uuid: uuid_bytes(complete[uuid].operation)
        for uuid, status in statuses.items()
        if uuid in complete and status.host.lower() != host
    }
    return [uuid for uuid, mark in foreign.items() if mark is None or reader.operation_by_uuid(mark) is None]


def find_replacements(cleanup: OperationRow | None, *, fence: int) -> dict[bytes, int]:
    """Return the strangers with a guest at their home, according to the operation ``clean`` of a registration.

    Args:
        fence: of the registration; the results of an earlier one no longer count.

    Returns:
        The version of the status at the answer, by instance.
    """
    body = None if cleanup is None or cleanup.kind != "clean" else body_of(cleanup, HostCleanup)
    return {} if body is None or body.fence != fence else replacements_of(body)


def replacements_of(body: HostCleanup) -> dict[bytes, int]:
    """Return the strangers with a guest at their home, as the body of an operation has them."""
    return {uuid: version for text, version in body.replaced.items() if (uuid := uuid_bytes(text)) is not None}


def plan_clean(
    current: Commits,
    reader: WorkReader,
    agent: AgentRow,
    *,
    fates: GuestFates,
    strangers: Collection[bytes],
    before: AgentRow | None,
    now_s: float,
) -> list[Put]:
    """Return the rows to begin the operation ``clean`` of a registration, and to end an earlier one.

    The orders of the earlier one are withdrawn, because a guest to be destroyed may belong to the host by now.

    Args:
        fates: of the guests.
        strangers: among the guests.
        before: the agent before this registration; None: there was none.
    """
    operation = reader.operation_by_uuid(agent.run)
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
        body=msgspec.msgpack.encode(_body_of_clean(reader, agent, operation, fates=fates, strangers=strangers)),
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
    fates: GuestFates,
    strangers: Collection[bytes],
) -> HostCleanup:
    """Return the body of the operation; after a repeated registration, it keeps the answers and the deadline."""
    numbers = [] if operation is None else [order.number for order in reader.orders_of(operation.id)]
    known = None if operation is None else body_of(operation, HostCleanup)
    before = known if known is not None and known.fence == agent.fence else None
    return HostCleanup(
        host=agent.host,
        fence=agent.fence,
        guests=tuple(map(uuid_text, fates.hold + fates.destroy + fates.query)),
        strangers=tuple(map(uuid_text, strangers)),
        replaced={} if before is None else before.replaced,
        limit_at_s=0.0 if before is None or not fates.query else before.limit_at_s,
        after=max(numbers, default=0),
    )


def _end_early(reader: WorkReader, cleaning: OperationRow | None, *, now_s: float) -> list[Put]:
    """Withdraw the orders of an operation ``clean``, and make it due: it then ends by itself."""
    if cleaning is None or cleaning.outcome:
        return []
    return [replace_row(make_due(cleaning, now_s=now_s)), *withdraw_orders(reader.orders_of(cleaning.id))]
