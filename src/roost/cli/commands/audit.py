"""``roost audit``: check a database by itself, reading only its tables."""

import os
from pathlib import Path

import click

from roost.cli import options
from roost.cli.text.audit_text import print_findings


@click.command("audit", short_help="Check a database by itself, reading only its tables.")
@options.config
@options.data
@click.option("--json", "is_json", is_flag=True, help="Print the findings as JSON.")
def audit(*, config: Path | None, data: Path | None, is_json: bool) -> None:
    """Check that no capacity is exceeded, nothing is held twice or by nobody, and group rules are kept.

    It reads the tables and nothing else, beside a server that runs. Exit code 8 if it finds anything.
    An inventory that was lowered below what is held, or whose units were changed, is found too.
    """
    from roost.app import audit_database

    findings = audit_database(config, data, os.environ)
    print_findings(findings, is_json=is_json, check="audit", success="nothing found: every rule is kept")
