"""The findings of ``roost nova-scheduler --check``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from roost.cli.output.list_view import ListView, field
from roost.cli.output.output_options import Output
from roost.errors import AuditFailed

if TYPE_CHECKING:
    from roost.nova.check.check_finding import Finding

DEPLOYMENT = ListView(
    nouns="findings",
    columns=(field("level", kind="state"), field("part"), field("found", kind="prose"), field("advice", kind="prose")),
)


def print_deployment(findings: "Sequence[Finding]", *, output: Output) -> None:
    """Print the findings and their numbers.

    Raises:
        AuditFailed: a finding is an error.
    """
    from roost.nova.check.check_finding import count_of

    output.print_rows(DEPLOYMENT, [msgspec.structs.asdict(finding) for finding in findings])
    errors, warnings = (sum(each.level == level for each in findings) for level in ("error", "warning"))
    if output.is_text:
        click.echo(f"\n{count_of(errors, 'error')}, {count_of(warnings, 'warning')}")
    if errors:
        raise AuditFailed(f"the check found {count_of(errors, 'error')}")
