"""``roost plan``: plan moves of instances."""

from collections.abc import Mapping
from typing import Any

import click

from roost.cli.backend import BackendOptions, backend_options, open_api
from roost.cli.complete_name import NameType
from roost.cli.instance.request_fields import (
    FLAVOR_OPTION,
    GROUP_OPTION,
    IMAGE_OPTION,
    REQUEST_OPTION,
    read_request_document,
    request_fields,
)
from roost.cli.output.list_view import Column, ListView, field
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import find_decision
from roost.cli.text.plain_text import escape_text
from roost.errors import NoValidHost
from roost.model.evidence.room_plan import MOVES_LIMIT, MOVES_MAX

_MOVES = ListView(
    nouns="moves",
    columns=(
        field("number", head="move"),
        field("instance"),
        field("source", head="from"),
        Column(name="target", head="to", value=lambda row: row["target"] or "-"),
        Column(name="how", value=lambda row: row["how"].replace("_", "-"), kind="keep"),
        Column(name="memory", value=lambda row: f"{row['memory_mb']:,} MiB" if row["memory_mb"] else "-"),
        Column(name="after", value=lambda row: ", ".join(map(str, row["after"])) or "-"),
        field("reason", kind="prose"),
    ),
)


@click.group("plan", short_help="Plan moves of instances.")
def plan() -> None:
    """Plan moves of instances. A plan is only shown: nothing moves."""


@plan.command("make-room", short_help="Plan the fewest moves to make room for a request.")
@click.argument("name", type=NameType("decision"), metavar="[NAME]", required=False)
@FLAVOR_OPTION
@IMAGE_OPTION
@GROUP_OPTION
@click.option("--zone", type=NameType("zone"), metavar="NAME", help="Availability zone of the instance.")
@click.option("--project", metavar="ID", help="Project of the instance.")
@REQUEST_OPTION
@click.option(
    "--moves",
    type=click.IntRange(1, MOVES_LIMIT),
    default=MOVES_MAX,
    show_default=True,
    metavar="N",
    help="Maximum number of moves.",
)
@output_options(can_watch=False)
@backend_options
def make_room(
    *, name: str | None, request: str | None, moves: int, output: Output, backend: BackendOptions, **fields: Any
) -> None:
    """Plan the fewest moves of instances to make room for a refused request. Nothing moves.

    NAME is a decision, or an instance for its newest one, as for `roost why`. Instead, give the request itself, as for
    `roost instance create`. Every plan is rehearsed: each move and the request pass all rules, in order. Without a
    plan, the exit code is 6.
    """
    given = {**({} if request is None else read_request_document(request)), **request_fields(fields)}
    if (name is None) == (not given):
        raise click.UsageError("give NAME, or a request by --flavor or --request")
    if given and "flavor" not in given:
        raise click.UsageError("the flavor is missing: give --flavor, or put it into the file of --request")
    with open_api(backend, is_read_only=True) as api:
        question = {"request": given} if name is None else {"decision": find_decision(api, name)}
        answer = api.request("POST", "plans", "make-room", body={**question, "moves": moves})
    output.print_document(answer, lambda: _plan_lines(answer))
    if not answer["host"]:
        raise NoValidHost(answer["problem"])


def _plan_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return the moves as a table, and the host for the request afterwards."""
    warnings = [escape_text(f"warning: {each}") for each in answer["warnings"]]
    if not answer["host"]:
        return ["no plan", *warnings]
    moves = answer["moves"]
    if not moves:
        return [escape_text(f"{answer['flavor']} fits on {answer['host']} without moves"), *warnings]
    memory_mb = sum(move["memory_mb"] for move in moves)
    is_least = answer["at_least"] == len(moves)
    bound = "no plan has fewer" if is_least else f"every plan has at least {answer['at_least']:,}"
    count = "1 move" if len(moves) == 1 else f"{len(moves):,} moves"
    return [
        *_MOVES.to_lines(moves, "table"),
        "",
        f"{count}, {memory_mb:,} MiB of memory to copy; {bound}",
        escape_text(f"then {answer['flavor']} fits on {answer['host']}"),
        *warnings,
    ]
