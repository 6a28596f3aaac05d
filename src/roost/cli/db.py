"""``roost db``: the database's schema."""

import os
from pathlib import Path

import click


@click.group("db", short_help="Look after the database.")
def db() -> None:
    """Look after the database."""


@db.command("upgrade")
@click.option("--config", type=click.Path(path_type=Path, readable=False), help="Settings, a TOML file.")
@click.option("--data", type=click.Path(path_type=Path, readable=False), help="Folder of the database.")
def upgrade(*, config: Path | None, data: Path | None) -> None:
    """Bring the database to this program's schema; nothing is lost, and it may be repeated."""
    from roost.app import upgrade_database

    click.echo(upgrade_database(config, data, os.environ))
