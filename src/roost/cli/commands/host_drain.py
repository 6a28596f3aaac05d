"""``roost host drain``: move all instances off a host."""

from collections.abc import Iterable
from typing import Any

import click

from roost.cli import options
from roost.cli.backend import BackendOptions, backend_options, open_api
from roost.cli.instance.wait import check_served, get_operation, watch_operation
from roost.cli.output.output_options import Output, output_options
from roost.cli.text.plain_text import escape_text
from roost.cli.views.operation_view import DRAINED, PLANNED_MOVES
from roost.errors import RoostError


@click.command("drain", short_help="Move all instances off a host.")
@click.argument("name", metavar="HOST")
@click.option("--dry-run", "is_dry", is_flag=True, help="Print the planned moves, and make none.")
@click.option("--at-once", type=click.IntRange(1, 100), default=2, metavar="N", help="Number of concurrent moves.  [2]")
@options.exclusive_flags(
    "is_disabling",
    ("--disable", "Disable the host first; this is the default."),
    ("--no-disable", "Do not disable the host."),
    default=True,
)
@output_options(can_watch=False)
@backend_options
def drain(
    *, name: str, is_dry: bool, at_once: int, is_disabling: bool, output: Output, backend: BackendOptions
) -> None:
    """Move all instances off a host, and wait until all moves end. HOST is the name of a service.

    Running instances migrate live if possible, else they are stopped first. Shelved instances are offloaded. Print the
    result of each instance. End with exit code 1 if an instance remains. After Ctrl-C the server continues the drain.
    """
    check_served(backend, is_waiting=not is_dry)
    body = {"dry_run": is_dry, "at_once": at_once, "disable": is_disabling}
    with open_api(backend, is_read_only=is_dry) as api:
        answer = api.request("POST", "hosts", name, "drain", body=body)
        if not is_dry:
            answer = watch_operation(
                api,
                get_operation(api, answer["operation"]),
                title="instances gone",
                count_done=lambda operation: len(operation["instances"]) - len(_remaining(operation)),
            )
    if is_dry:
        output.print_document(answer, lambda: _plan_lines(answer))
        return
    output.print_document(answer, lambda: [*_lines(answer), *(_enable_hint(name) if is_disabling else ())])
    if answer["outcome"] == "failed":
        raise RoostError(answer["problem"])


def _remaining(operation: dict[str, Any]) -> list[str]:
    """Return the uuids of the instances that are still on the host."""
    host = _find_drained_host(operation["story"])
    return [
        each["uuid"]
        for each in operation["instances"]
        if each["host"].lower() == host.lower() and each["status"] != "DELETED"
    ]


def _find_drained_host(story: Iterable[dict[str, Any]]) -> str:
    return next((str(each["told"]["host"]) for each in story if each["kind"] == "drain.asked"), "")


def _lines(operation: dict[str, Any]) -> list[str]:
    """Return the lines of a finished drain: the result of each instance."""
    problems = {
        each["instance"]: each["told"]["problem"] for each in operation["story"] if each["kind"] == "drain.stayed"
    }
    remaining = set(_remaining(operation))
    rows = [
        {**each, "problem": problems.get(each["uuid"], "") if each["uuid"] in remaining else ""}
        for each in operation["instances"]
    ]
    gone_count = len(rows) - len(remaining)
    return [*DRAINED.to_lines(rows, "table"), "", f"{gone_count:,} gone, {len(remaining):,} stayed"]


def _enable_hint(name: str) -> list[str]:
    """Return a hint on how to enable the host again."""
    return [escape_text(f"{name} gets no new instances until `roost host set {name} --enable`")]


def _plan_lines(plan: dict[str, Any]) -> list[str]:
    """Return the lines of a dry run."""
    staying = sum(not each["how"] for each in plan["moves"])
    return [
        *PLANNED_MOVES.to_lines(plan["moves"], "table"),
        "",
        f"{len(plan['moves']) - staying:,} would go, {staying:,} would stay",
    ]
