"""``roost db``: the database's schema, and copies of what it holds."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from roost.cli import options
from roost.cli.text.audit_text import print_findings


@click.group("db", short_help="Look after the database.")
def db() -> None:
    """Look after the database."""


def _database_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which database."""
    for option in (
        click.option("--database", metavar="URL", help="PostgreSQL URL, or path of a SQLite file."),
        options.data,
        options.config,
    ):
        command = option(command)
    return command


def _url(database: str | None, config: Path | None, data: Path | None) -> str:
    from roost.app import database_of

    return database or database_of(config, data, os.environ)


def _display_name(url: str) -> str:
    from roost.store.backends import is_postgresql

    # The address of a server may hold a password.
    return "the PostgreSQL database" if is_postgresql(url) else url


@db.command("upgrade", short_help="Bring the database to this program's schema.")
@_database_options
def upgrade(*, database: str | None, config: Path | None, data: Path | None) -> None:
    """Bring the database to this program's schema; nothing is lost, and it may be repeated."""
    from roost import app

    url = _url(database, config, data)
    app.upgrade(url, settings=app.settings_of(config, os.environ).store)
    click.echo(f"{_display_name(url)} has the schema of this program")


@db.command("sync", short_help="Make the database, or bring it to this program's schema.")
@_database_options
def sync(*, database: str | None, config: Path | None, data: Path | None) -> None:
    """Make the database if it is absent, else bring it to this program's schema."""
    from roost import app

    url = _url(database, config, data)
    app.sync(url, settings=app.settings_of(config, os.environ).store)
    click.echo(f"{_display_name(url)} has the schema of this program")


@db.command("version")
@_database_options
def version(*, database: str | None, config: Path | None, data: Path | None) -> None:
    """Print the schema that the database has."""
    from roost.app import version_of

    click.echo(version_of(_url(database, config, data)) or "none")


@db.command("check", short_help="Check the schema, and that the tables keep every rule.")
@_database_options
@click.option("--json", "is_json", is_flag=True, help="Print the findings as JSON.")
def check(*, database: str | None, config: Path | None, data: Path | None, is_json: bool) -> None:
    """Check that the schema is this program's, and that the tables keep every rule.

    The database is only read, beside a server that runs. Exit code 7 for another schema, 8 for broken rules.
    """
    from roost.app import audit

    well = "the schema is right and every rule is kept"
    print_findings(audit(_url(database, config, data)), is_json=is_json, check="check", success=well)


@db.command("backup", short_help="Write all that the database holds into FILE.")
@click.argument("file", type=click.Path(path_type=Path))
@_database_options
def backup(*, file: Path, database: str | None, config: Path | None, data: Path | None) -> None:
    """Write all that the database holds at one moment into FILE, while it is served."""
    from roost import app
    from roost.cli.text.progress import progress_bar

    with progress_bar("rows") as progress:
        header, size = app.backup(_url(database, config, data), file, progress=progress)
    click.echo(f"{file}: {header.rows:,} rows, {size:,} bytes, schema {header.schema}, made {header.made_at}")


@db.command("restore", short_help="Let the database hold what the backup FILE holds.")
@click.argument("file", type=click.Path(path_type=Path))
@_database_options
@click.option("--replace", "may_replace", is_flag=True, help="Replace what the database holds.")
def restore(*, file: Path, database: str | None, config: Path | None, data: Path | None, may_replace: bool) -> None:
    """Let the database hold what the backup FILE holds: all of it, or what it held before.

    Without --replace the database must be absent or empty. Processes that serve a PostgreSQL database read it
    again by themselves; those that serve a SQLite file must be stopped first.
    """
    from roost import app
    from roost.cli.text.progress import progress_bar

    with progress_bar("rows") as progress:
        header = app.restore(_url(database, config, data), file, may_replace=may_replace, progress=progress)
    click.echo(f"restored {header.rows:,} rows, as they were at {header.made_at}")
