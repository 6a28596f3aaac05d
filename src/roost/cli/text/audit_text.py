"""What ``roost audit`` and ``roost db check`` say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from roost.cli.text.plain_text import escape_json
from roost.errors import AuditFailed

if TYPE_CHECKING:
    from roost.store.audit import Finding


def print_findings(findings: "Sequence[Finding]", *, is_json: bool, check: str, success: str) -> None:
    """Print what is wrong, and how much.

    Args:
        who: what looked, as the error names it.
        when_well: what is said where nothing is wrong.

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
    """Return a finding as a line."""
    return f"{finding.check}: {finding.subject}: {finding.problem}"
