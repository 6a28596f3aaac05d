"""What ``roost audit`` and ``roost db check`` say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from roost.errors import AuditFailed

if TYPE_CHECKING:
    from roost.store.audit import Finding


def tell(findings: "Sequence[Finding]", *, is_json: bool, who: str, when_well: str) -> None:
    """Print what is wrong, then the notes, then how many there are.

    Args:
        who: what looked, as the error names it.
        when_well: what is said where nothing is wrong.

    Raises:
        AuditFailed: something is wrong; notes alone are no failure.
    """
    wrong = [finding for finding in findings if not finding.is_note]
    notes = [finding for finding in findings if finding.is_note]
    if is_json:
        click.echo(msgspec.json.encode([*wrong, *notes]).decode())
    else:
        for finding in (*wrong, *notes):
            click.echo(line_of(finding))
        said = f"{len(wrong):,} findings" if wrong else when_well
        click.echo(f"{said}; {len(notes):,} notes" if notes else said)
    if wrong:
        raise AuditFailed(f"the {who} found {len(wrong):,} broken rules")


def line_of(finding: "Finding") -> str:
    """Return a finding or a note as a line."""
    return f"{'note: ' * finding.is_note}{finding.check}: {finding.subject}: {finding.problem}"
