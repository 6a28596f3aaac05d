"""Backup and restore: all rows of one moment are written to a file, and restored from it in one transaction."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import uuid4

import msgspec

from roost.errors import BadFile, BadRequest, report_corruption
from roost.model.stored_decision import drop_seen
from roost.model.work.work_rows import NO_RUN, RESTORE_LEASE, AgentRow, LeaseRow, OperationRow
from roost.store.backends import database_at
from roost.store.backup_file import Block, Header, Progress, TableHead, read_blocks, read_header, write_backup
from roost.store.database import BackupReader
from roost.store.rules.codec import CODECS
from roost.store.rules.schema import (
    AGENT,
    BACKUP_VERSIONS,
    DECISION,
    HISTORY,
    LEASE,
    OPERATION,
    SCHEMA_VERSION,
    SEQUENCE,
    Table,
)

# A backup omits feed and snapshots, which serve to rebuild earlier states: a restored database has a new history.
TABLES: tuple[Table, ...] = (*(codec.table for codec in CODECS.values()), HISTORY, SEQUENCE)
_ROWS_PER_BLOCK = 2000
_LEASE_NAME = LEASE.columns.index("name")
_BODY = DECISION.columns.index("body")


def backup(url: str, path: Path, *, progress: Progress) -> tuple[Header, int]:
    """Write the content of a database at one moment into a new file, beside the processes that serve it.

    Returns:
        The header of the file, and its size in bytes.

    Raises:
        BadRequest: the file exists.
        BadFile: it cannot be written.
        StoreOutdated: the schema is older or newer than the program's; the message names the remedy.
        Unavailable: the database cannot be read.
    """
    database = database_at(url)
    with database.read_backup() as reader:
        header = Header(
            schema=SCHEMA_VERSION,
            database=database.kind,
            made_at=datetime.now(UTC).isoformat(timespec="seconds"),
            position=reader.position(),
            tables=tuple(TableHead(table.name, table.columns, reader.count(table)) for table in TABLES),
        )
        return header, write_backup(path, header, _blocks(reader), progress=progress)


def _blocks(reader: BackupReader) -> Iterator[Block]:
    for number, table in enumerate(TABLES):
        rows = iter(reader.rows(table))
        while block := list(islice(rows, _ROWS_PER_BLOCK)):
            yield number, block


def restore(url: str, path: Path, *, may_replace: bool, progress: Progress) -> Header:
    """Replace the content of a database by a backup, in one transaction.

    An absent or empty database is created first. Processes that serve a shared database reload it by themselves; a
    SQLite file must not be served.

    Agents must register again, so that the server learns of guests that moved after the backup.

    Args:
        may_replace: whether existing content may be replaced.

    Raises:
        BadFile: it is not a complete backup, or has another schema.
        BadRequest: the database has content that may not be replaced.
        StoreBusy: the SQLite file is served.
        Unavailable: the database cannot be written.
    """
    header = read_header(path)
    if header.schema not in BACKUP_VERSIONS:
        age = "older" if header.schema < SCHEMA_VERSION else "newer"
        raise BadFile(
            str(path),
            f"the backup has schema {header.schema}, {age} than {SCHEMA_VERSION} of this program: restore it with the "
            "roost that wrote it, then run `roost db upgrade`",
        )
    tables = {table.name: table for table in TABLES}
    with database_at(url).replace() as writer:
        if not may_replace and not writer.is_empty():
            raise BadRequest("the database is not empty: nothing was changed; use --replace to replace its content")
        writer.clear()
        done, now_s = 0, time.time()
        renew = partial(_renew_operations, delay_s=header.age_s(now_s))
        for number, rows in read_blocks(path):
            table = tables[header.tables[number].name]
            change = renew if table.name == OPERATION.name else _RESTORED.get(table.name, _same)
            writer.write(table, change(rows))
            done += len(rows)
            progress(done, header.rows)
        writer.write(LEASE, [msgspec.structs.astuple(restore_lease(now_s))])
        writer.finish(header.position)
    return header


def restore_lease(now_s: float) -> LeaseRow:
    """Return the record of a restore; hosts may have carried out later orders than the database knows."""
    return LeaseRow(name=RESTORE_LEASE, owner="roost db restore", until_s=now_s)


def forget_registration(agent: AgentRow) -> AgentRow:
    """Return an agent of a restored database: it must register again, since its guests may have changed."""
    return msgspec.structs.replace(agent, run=NO_RUN, state="arriving", fence=agent.fence + 1)


def renew_operation(operation: OperationRow, *, uuid: bytes, delay_s: float) -> OperationRow:
    """Return an operation of a restored database; if it is open, with a new uuid and a later time limit.

    It goes on, but the hosts do not take its further orders for those that they carried out after the backup. Guests
    with its former uuid as their mark count as unknown. A build or move does not go on to another host, since its guest
    may have run on the first one since the backup.

    Args:
        uuid: the new one.
        delay_s: seconds since the backup.
    """
    if operation.outcome:
        return operation
    try:
        body = msgspec.msgpack.decode(operation.body, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        return msgspec.structs.replace(operation, uuid=uuid)  # The conductor logs an operation that it cannot read.
    if limit_at_s := body.get("limit_at_s"):
        body["limit_at_s"] = limit_at_s + delay_s
    if picks := body.get("picks"):
        body["picks"] = picks[:1]
    return msgspec.structs.replace(operation, uuid=uuid, body=msgspec.msgpack.encode(body))


def _renew_operations(rows: list[tuple[Any, ...]], *, delay_s: float) -> list[tuple[Any, ...]]:
    """Return operations; the open ones have a new uuid and a later time limit."""
    operations = (OperationRow(**dict(zip(OPERATION.columns, row, strict=True))) for row in rows)
    renewed = (renew_operation(each, uuid=uuid4().bytes, delay_s=delay_s) for each in operations)
    return [msgspec.structs.astuple(each) for each in renewed]


def _forget_registrations(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return agents that must register again."""
    agents = (AgentRow(**dict(zip(AGENT.columns, row, strict=True))) for row in rows)
    return [msgspec.structs.astuple(forget_registration(agent)) for agent in agents]


def _drop_restore(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return leases without the record of an earlier restore."""
    return [row for row in rows if row[_LEASE_NAME] != RESTORE_LEASE]


def _same(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return rows


def _drop_positions(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return decisions without their record of ``Store.visible_changes``, void in the restored database."""
    with report_corruption("a decision"):
        return [(*row[:_BODY], drop_seen(row[_BODY]), *row[_BODY + 1 :]) for row in rows]


# By table: the function that changes its rows on their way into the restored database. Operations have one, too.
_RESTORED: Mapping[str, Callable[[list[tuple[Any, ...]]], list[tuple[Any, ...]]]] = MappingProxyType(
    {DECISION.name: _drop_positions, AGENT.name: _forget_registrations, LEASE.name: _drop_restore}
)
