"""``roost instance``: live-migrate and evacuate instances."""

from typing import Any

import click

from roost.cli.backend import Api, BackendOptions, backend_options, open_api
from roost.cli.complete_name import NameType
from roost.cli.instance.wait import check_served, run_action, wait_for_operation, wait_option
from roost.cli.output.output_options import Output, output_options
from roost.cli.text.plain_text import escape_text
from roost.cli.text.progress import progress_bar
from roost.cli.views.operation_view import EVACUATED
from roost.errors import RoostError


@click.command("live-migrate", short_help="Migrate a running instance to another host.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@click.option(
    "--host",
    type=NameType("host"),
    metavar="NAME",
    help="Target service; filters must accept it.  [chosen by the scheduler]",
)
@wait_option
@output_options(can_watch=False)
@backend_options
def live_migrate(*, name: str, host: str | None, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Migrate a running instance to another host. After a failure, the instance stays and its fault has the reason."""
    run_action("live-migrate", name, body={"host": host}, is_waiting=is_waiting, output=output, backend=backend)


@click.command("evacuate", short_help="Rebuild instances of a failed host elsewhere.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE", required=False)
@click.option("--host", type=NameType("host"), metavar="NAME", help="Evacuate all instances of this service.")
@click.option(
    "--to",
    "target",
    type=NameType("host"),
    metavar="NAME",
    help="Target service; filters must accept it.  [chosen by the scheduler]",
)
@wait_option
@output_options(can_watch=False)
@backend_options
def evacuate(
    *, name: str | None, host: str | None, target: str | None, is_waiting: bool, output: Output, backend: BackendOptions
) -> None:
    """Rebuild an instance of a failed host on another host; with --host, all instances of the failed host.

    The failed host destroys its guests when it returns. With --host, print one line per instance. End with exit code 1
    if an evacuation is refused or, with --wait, fails.
    """
    if (name is None) is (host is None):
        raise click.UsageError("give either INSTANCE or --host")
    if name is not None:
        run_action("evacuate", name, body={"host": target}, is_waiting=is_waiting, output=output, backend=backend)
        return
    check_served(backend, is_waiting=is_waiting)
    with open_api(backend, is_read_only=False) as api:
        instances = api.list_all("instances", host=host)
        if not instances:
            api.request("GET", "agents", str(host))  # Raises NotFound for an unknown host.
        rows = [_request_evacuation(api, each, target) for each in instances if each["status"]]
        if is_waiting:
            rows = _wait_for_all(api, rows)
    output.print_document(rows, lambda: _lines(rows, str(host)))
    failures = sum(row["outcome"] in {"refused", "failed"} for row in rows)
    if failures:
        raise RoostError(f"{failures} of {len(rows)} instances of {host} were not evacuated")


COMMANDS: tuple[click.Command, ...] = (live_migrate, evacuate)


def _request_evacuation(api: Api, instance: dict[str, Any], target: str | None) -> dict[str, Any]:
    """Request the evacuation of one instance; return its row."""
    row = {"name": instance["name"], "uuid": instance["uuid"], "operation": None, "host": instance["host"]}
    try:
        accepted = api.request("POST", "instances", instance["uuid"], "evacuate", body={"host": target})
    except RoostError as error:
        return {**row, "outcome": "refused", "problem": str(error)}
    return {**row, "operation": accepted["operation"], "outcome": "open", "problem": ""}


def _wait_for_all(api: Api, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Wait for all evacuations, with a progress bar; return their rows."""
    finished: list[dict[str, Any]] = []
    with progress_bar("finished evacuations") as progress:
        for row in rows:
            finished.append(_wait_for_row(api, row))
            progress(len(finished), len(rows))
    return finished


def _wait_for_row(api: Api, row: dict[str, Any]) -> dict[str, Any]:
    if row["operation"] is None:
        return row
    operation = wait_for_operation(api, row["operation"])
    (subject,) = operation["instances"]
    return {**row, "outcome": operation["outcome"], "host": subject["host"], "problem": operation["problem"]}


def _lines(rows: list[dict[str, Any]], host: str) -> list[str]:
    done = sum(row["outcome"] == "done" for row in rows)
    failures = sum(row["outcome"] in {"refused", "failed"} for row in rows)
    if not rows:
        return [escape_text(f"no instance is on {host}")]
    total = (
        f"{len(rows)} instances of {host}: {done} done, {len(rows) - done - failures} open, {failures} not evacuated"
    )
    return [*EVACUATED.to_lines(rows, "table"), "", escape_text(total)]
