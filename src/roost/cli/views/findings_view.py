"""The findings of ``roost audit`` and ``roost db check``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from roost.cli.output.list_view import ListView, field
from roost.cli.output.output_options import Output
from roost.errors import AuditFailed

if TYPE_CHECKING:
    from roost.store.audit import Finding

FINDINGS = ListView(nouns="findings", columns=(field("check"), field("subject"), field("problem", kind="prose")))


def print_findings(findings: "Sequence[Finding]", *, output: Output, check: str, success: str) -> None:
    """Print findings and their number.

    Args:
        check: name of the check in the error.
        success: printed if nothing is wrong.

    Raises:
        AuditFailed: something is wrong.
    """
    rows = [msgspec.structs.asdict(finding) for finding in findings]
    if rows or not output.is_text:
        output.print_rows(FINDINGS, rows)
    if output.is_text:
        click.echo(f"\n{len(rows):,} findings" if rows else success)
    if rows:
        raise AuditFailed(f"the {check} found {len(rows):,} broken rules")


def format_finding(finding: "Finding") -> str:
    """Return a finding as one line."""
    return f"{finding.check}: {finding.subject}: {finding.problem}"
