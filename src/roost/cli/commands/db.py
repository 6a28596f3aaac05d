"""``roost db``: schema, backup and restore of the database."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from roost.cli import options
from roost.cli.output.output_options import Output, output_options
from roost.cli.upkeep_record import record_upkeep
from roost.cli.views.database_view import database_lines
from roost.cli.views.findings_view import FINDINGS, print_findings


@click.group("db", short_help="Manage the database.")
def db() -> None:
    """Manage the database: schema, check, backup, restore."""


def _database_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select the database."""
    for option in (
        click.option("--database", metavar="URL", help="URL of PostgreSQL or MariaDB, or path of a SQLite file."),
        options.data,
        options.config,
    ):
        command = option(command)
    return command


def _url(database: str | None, config: Path | None, data: Path | None) -> str:
    from roost.app import database_of

    return database or database_of(config, data, os.environ)


@db.command("upgrade", short_help="Upgrade the schema of the database.")
@_database_options
@click.option("--expand", "is_expansion", is_flag=True, help="Run only the steps that older processes do not notice.")
def upgrade(*, database: str | None, config: Path | None, data: Path | None, is_expansion: bool) -> None:
    """Upgrade the database to the schema of this program. No data is lost; repeating it is safe.

    Use it by hand when you upgrade Roost, since it creates no database; use `roost db sync` in scripts that install.

    On a database server, processes can keep running: use --expand first, replace the processes one after the other,
    then upgrade without --expand. The last step is refused while a process of an older version lives; `roost db status`
    lists them. Stop the server of a SQLite file first.
    """
    from roost import app

    url = _url(database, config, data)
    settings = app.settings_of(config, os.environ).store
    if is_expansion:
        app.expand(url, settings=settings)
        click.echo(f"{app.database_name(url)} can be served by this program and the version before")
    else:
        app.upgrade(url, settings=settings)
        click.echo(f"{app.database_name(url)} has the schema of this program")


@db.command("sync", short_help="Create the database, or upgrade its schema.")
@_database_options
def sync(*, database: str | None, config: Path | None, data: Path | None) -> None:
    """Create the database if it is absent or empty, else upgrade its schema. Repeating it is safe.

    Use it in scripts that install Roost; use `roost db upgrade` by hand, since it creates no database by mistake.
    """
    from roost import app

    url = _url(database, config, data)
    app.sync(url, settings=app.settings_of(config, os.environ).store)
    click.echo(f"{app.database_name(url)} has the schema of this program")


@db.command("version", short_help="Print the schema version of the database.")
@_database_options
def version(*, database: str | None, config: Path | None, data: Path | None) -> None:
    """Print the schema version of the database, such as 0012; "none" for an empty database."""
    from roost.app import version_of

    click.echo(version_of(_url(database, config, data)) or "none")


@db.command("status", short_help="Show the schema and the processes of the database.")
@_database_options
@output_options()
def status(*, database: str | None, config: Path | None, data: Path | None, output: Output) -> None:
    """Show the schema of the database, and its live processes with their versions.

    Without a heartbeat for 30 seconds, a process counts as live only while it is connected to this server. A process
    without a schema is older than heartbeats. The server of a SQLite file is not listed.
    """
    from roost.app import status_of

    def show() -> None:
        found = status_of(_url(database, config, data))
        output.print_document(msgspec.to_builtins(found), lambda: database_lines(found))

    output.repeat(show)


@db.command("check", short_help="Check the schema and consistency of the database.")
@_database_options
@output_options(FINDINGS, can_watch=False)
def check(*, database: str | None, config: Path | None, data: Path | None, output: Output) -> None:
    """Check that the database has the schema of this program and is consistent, as `roost audit` does.

    Read the database only; servers can keep running. Print the findings. End with exit code 4 for a missing
    database, 7 for another schema, and 8 for a corrupt database or findings. Record the audit, as `roost audit` does.
    """
    from roost.app import audit

    url = _url(database, config, data)
    success = "the schema is current and all rules hold"
    findings = audit(url)
    record_upkeep(url, "audit", findings=len(findings))
    print_findings(findings, output=output, check="check", success=success)


@db.command("backup", short_help="Write a backup of the database to FILE.")
@click.argument("file", type=click.Path(path_type=Path))
@_database_options
def backup(*, file: Path, database: str | None, config: Path | None, data: Path | None) -> None:
    """Write a consistent backup of the database to FILE, which must not exist. Servers can keep running.

    Record the time and the size of the backup in the database, for the metrics of servers.
    """
    from roost import app
    from roost.cli.text.progress import progress_bar

    url = _url(database, config, data)

    with progress_bar("rows") as progress:
        header, size = app.backup(url, file, progress=progress)
    record_upkeep(url, "backup", size_bytes=size)
    click.echo(f"{file}: {header.rows:,} rows, {size:,} bytes, schema {header.schema}, made {header.made_at}")


@db.command("restore", short_help="Restore the database from the backup FILE.")
@click.argument("file", type=click.Path(path_type=Path))
@_database_options
@click.option("--replace", "may_replace", is_flag=True, help="Replace existing data.")
def restore(*, file: Path, database: str | None, config: Path | None, data: Path | None, may_replace: bool) -> None:
    """Restore the database from the backup FILE, in one commit.

    Without --replace the database must be absent or empty. Servers of a shared database reload it by themselves.
    Stop the server of a SQLite file first.
    """
    from roost import app
    from roost.cli.text.progress import progress_bar

    url = _url(database, config, data)

    with progress_bar("rows") as progress:
        header = app.restore(url, file, may_replace=may_replace, progress=progress)
    click.echo(f"{app.database_name(url)}: restored {header.rows:,} rows, as they were at {header.made_at}")
