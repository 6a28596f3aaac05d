"""``roost audit``: check a database by itself, reading only its tables."""

import os
from pathlib import Path

import click
import msgspec

from roost.cli import options
from roost.errors import AuditFailed


@click.command("audit", short_help="Check a database by itself, reading only its tables.")
@options.config
@options.data
@click.option("--json", "is_json", is_flag=True, help="Print the findings as JSON.")
def audit(*, config: Path | None, data: Path | None, is_json: bool) -> None:
    """Check that no capacity is exceeded, nothing is held twice or by nobody, and group rules are kept.

    It reads the tables and nothing else, beside a server that runs. Exit code 8 if it finds anything.
    """
    from roost.app import audit_database

    findings = audit_database(config, data, os.environ)
    if is_json:
        click.echo(msgspec.json.encode(findings).decode())
    else:
        for finding in findings:
            click.echo(f"{finding.check}: {finding.subject}: {finding.problem}")
        click.echo(f"{len(findings):,} findings" if findings else "nothing found: every rule is kept")
    if findings:
        raise AuditFailed(f"the audit found {len(findings):,} broken rules")
