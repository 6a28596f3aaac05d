"""``roost audit``: check a database for consistency."""

import os
from pathlib import Path

import click

from roost.cli import options
from roost.cli.text.audit_text import print_findings


@click.command("audit", short_help="Check a database for consistency.")
@options.config
@options.data
@click.option("--json", "is_json", is_flag=True, help="Print the findings as JSON.")
def audit(*, config: Path | None, data: Path | None, is_json: bool) -> None:
    """Check a database for exceeded capacity, orphaned or duplicate allocations, and broken group rules.

    Read the tables only; servers can keep running. Print one line per finding, and their number. End with exit code
    8 if there are findings. Inventories lowered below their use are findings too.
    """
    from roost.app import audit_database

    findings = audit_database(config, data, os.environ)
    print_findings(findings, is_json=is_json, check="audit", success="no findings: all rules hold")
