"""Backup and restore, for either database: all rows of one moment into a file, and back in one transaction."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from roost.errors import BadFile, BadRequest, report_corruption
from roost.model.stored_decision import drop_seen
from roost.store.backends import database_at
from roost.store.backup_file import Block, Header, Progress, TableHead, read_blocks, read_header, write_backup
from roost.store.database import BackupReader
from roost.store.rules.codec import CODECS
from roost.store.rules.schema import DECISION, SCHEMA_VERSION, SEQUENCE, Table

# Feed and snapshots are the way back to moments before: a database that was restored begins a way of its own.
TABLES: tuple[Table, ...] = (*(codec.table for codec in CODECS.values()), SEQUENCE)
_ROWS_PER_BLOCK = 2000
_BODY = DECISION.columns.index("body")


def backup(url: str, path: Path, *, progress: Progress) -> tuple[Header, int]:
    """Write all that a database holds at one moment into a new file, beside the processes that serve it.

    Returns:
        What the file holds, and its bytes.

    Raises:
        BadRequest: there is a file of this name already.
        BadFile: it cannot be written.
        StoreOutdated: run the command that the message names.
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
    """Let a database hold what a backup holds, in one transaction: it has all of it, or what it had.

    An absent or empty database is made first. Processes that serve a PostgreSQL database read it again by
    themselves; a SQLite file must not be served.

    Args:
        may_replace: whether a database that holds anything is replaced.

    Raises:
        BadFile: it is no backup, not whole, or of another schema.
        BadRequest: the database holds something, and may not be replaced.
        StoreBusy: the SQLite file is served.
        Unavailable: the database cannot be written.
    """
    header = read_header(path)
    if header.schema != SCHEMA_VERSION:
        age = "older" if header.schema < SCHEMA_VERSION else "newer"
        raise BadFile(
            str(path),
            f"the backup has schema {header.schema}, {age} than {SCHEMA_VERSION} of this program: restore it with the "
            "roost that wrote it, then run `roost db upgrade`",
        )
    tables = {table.name: table for table in TABLES}
    with database_at(url).replace() as writer:
        if not may_replace and not writer.is_empty():
            raise BadRequest("the database holds something already: nothing was changed; use --replace to replace it")
        writer.clear()
        done = 0
        for number, rows in read_blocks(path):
            table = tables[header.tables[number].name]
            writer.write(table, _forgetful(rows) if table is DECISION else rows)
            done += len(rows)
            progress(done, header.rows)
        writer.finish(header.position)
    return header


def _forgetful(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return decisions that know no more which changes they saw: here others have their numbers."""
    with report_corruption("a decision"):
        return [(*row[:_BODY], drop_seen(row[_BODY]), *row[_BODY + 1 :]) for row in rows]
