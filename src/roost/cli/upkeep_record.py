"""The record of audits and backups in the database."""

from typing import Literal

import click

from roost.errors import RoostError


def record_upkeep(url: str, name: Literal["audit", "backup"], *, findings: int = 0, size_bytes: int = 0) -> None:
    """Record an audit or a backup, or print why that is impossible, such as on a read-only copy."""
    from roost import app

    try:
        app.record_upkeep(url, name, findings=findings, size_bytes=size_bytes)
    except RoostError as error:
        click.echo(f"roost: the {name} is done, but metrics will not show it: {error}", err=True)
