"""``roost audit``: check a database for consistency."""

import os

import click
import msgspec

from roost.cli.backend import BackendOptions, backend_options, open_api
from roost.cli.output.output_options import Output, output_options
from roost.cli.upkeep_record import record_upkeep
from roost.cli.views.findings_view import FINDINGS, print_findings


@click.command("audit", short_help="Check a database for consistency.")
@output_options(FINDINGS, can_watch=False)
@backend_options
def audit(*, output: Output, backend: BackendOptions) -> None:
    """Check the database of a server for exceeded capacity, orphaned or duplicate allocations, and broken group rules.

    With --data, --database or --config, read the tables of a database directly; servers can keep running. Print one
    line per finding, and their number. End with exit code 8 if there are findings. Inventories lowered below their use
    are findings too. The database records the time and the number of findings, for metrics.
    """
    from roost.store.audit import Finding

    if backend.is_local:
        from roost import app

        backend.check_one_source()
        url = backend.database or app.database_of(backend.config, backend.data, os.environ)
        findings = app.audit(url)
        record_upkeep(url, "audit", findings=len(findings))
    else:
        with open_api(backend, is_read_only=True) as api:
            answer = api.request("GET", "audit")
        findings = msgspec.convert(answer["findings"], list[Finding])
    print_findings(findings, output=output, check="audit", success="no findings: all rules hold")
