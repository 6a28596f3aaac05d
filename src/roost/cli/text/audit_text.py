"""The output of ``roost audit`` and ``roost db check``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from roost.cli.text.plain_text import escape_json
from roost.errors import AuditFailed

if TYPE_CHECKING:
    from roost.store.audit import Finding


def print_findings(findings: "Sequence[Finding]", *, is_json: bool, check: str, success: str) -> None:
    """Print findings and their number.

    Args:
        check: name of the check in the error.
        success: printed if nothing is wrong.

    Raises:
        AuditFailed: something is wrong.
    """
    if is_json:
        click.echo(escape_json(msgspec.json.encode(findings)))
    else:
        for finding in findings:
            click.echo(format_finding(finding))
        click.echo(f"{len(findings):,} findings" if findings else success)
    if findings:
        raise AuditFailed(f"the {check} found {len(findings):,} broken rules")


def format_finding(finding: "Finding") -> str:
    """Return a finding as one line."""
    return f"{finding.check}: {finding.subject}: {finding.problem}"
