"""``roost status``: the state of a fleet in numbers."""

import click

from roost.cli.backend import BackendOptions, backend_options, show_object
from roost.cli.output.output_options import Output, output_options
from roost.cli.views.status_view import status_lines


@click.command("status", short_help="Show the state of the fleet in numbers.")
@output_options()
@backend_options
def status(*, output: Output, backend: BackendOptions) -> None:
    """Show the state of the fleet in numbers.

    Print hosts, agents, instances and operations by state, the last backup and audit, the use of each resource class,
    and the refusals of the last hour by reason.
    """
    show_object(
        lambda api: api.request("GET", "status"),
        lambda answer, _: status_lines(answer),
        backend=backend,
        output=output,
    )
