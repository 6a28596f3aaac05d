"""``roost plan apply``: make the moves of a plan."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from roost.cli.backend import BackendOptions, backend_options, open_api
from roost.cli.instance.request_fields import read_request_document
from roost.cli.instance.wait import check_served, get_operation, watch_operation
from roost.cli.options import Command
from roost.cli.output.list_view import ListView, fault_field, field
from roost.cli.output.output_options import Output, output_options
from roost.cli.text.plain_text import format_time
from roost.cli.views.plan_view import MOVE_COLUMNS
from roost.errors import RoostError
from roost.model.work.move_windows import WINDOWS_MAX

_FIELDS = ("number", "instance_uuid", "source", "target", "after")
_RESULTS = ListView(
    nouns="moves",
    columns=(
        *MOVE_COLUMNS,
        field("state", kind="state"),
        fault_field("problem"),
    ),
)


def _limit_option(name: str, default: int, text: str) -> Callable[[Command], Command]:
    """Return a limit of concurrent moves as an option."""
    return click.option(name, type=click.IntRange(1, 100), default=default, show_default=True, metavar="N", help=text)


@click.command("apply", short_help="Make the moves of a plan.")
@click.argument("file")
@click.option("--dry-run", "is_dry", is_flag=True, help="Rehearse the moves on the present fleet, and make none.")
@click.option("--only", type=click.IntRange(min=1), multiple=True, metavar="N", help="Make only move N; repeatable.")
@_limit_option("--at-once", 2, "Number of concurrent moves.")
@_limit_option("--per-host", 2, "Number of concurrent moves to or from one host.")
@_limit_option("--per-group", 1, "Number of concurrent moves in one server group.")
@click.option(
    "--deadline",
    type=click.FloatRange(0, 2_592_000, min_open=True),
    metavar="SECONDS",
    help="Begin no move after this time; moves under way continue to their end.",
)
@click.option(
    "--window",
    "windows",
    multiple=True,
    metavar="TIMES",
    help="Begin moves only in this window in UTC, such as 22:00-06:00 or sat,sun@22:00-06:00; repeatable.",
)
@output_options(can_watch=False)
@backend_options
def apply(
    *,
    file: str,
    is_dry: bool,
    only: tuple[int, ...],
    at_once: int,
    per_host: int,
    per_group: int,
    deadline: float | None,
    windows: tuple[str, ...],
    output: Output,
    backend: BackendOptions,
) -> None:
    """Make the moves of a plan, in order, and wait until they end. FILE has the JSON of a plan; - is standard input.

    Each move is decided again when it begins. If it does not fit then, it fails, and the moves that need it are
    skipped. End with exit code 1 if a move was not made. After Ctrl-C the server continues; cancel the plan with
    `roost operation cancel`.
    """
    check_served(backend, is_waiting=not is_dry)
    if len(windows) > WINDOWS_MAX:
        raise click.UsageError(f"give at most {WINDOWS_MAX} windows, not {len(windows):,}")
    moves = _read_moves(file, only)
    body: dict[str, object] = {
        "moves": [{name: move[name] for name in _FIELDS if name in move} for move in moves],
        "dry_run": is_dry,
        "at_once": at_once,
        "per_host": per_host,
        "per_group": per_group,
        "deadline_s": deadline,
        "windows": list(windows),
    }
    with open_api(backend, is_read_only=is_dry) as api:
        answer = api.request("POST", "plans", "apply", body=body)
        if not is_dry:
            answer = watch_operation(
                api,
                get_operation(api, answer["operation"]),
                title="moves ended",
                count_done=_count_ended,
                describe_wait=_describe_wait,
            )
    if is_dry:
        output.print_document(answer, lambda: _lines(answer["moves"]))
        missing = sum(move["state"] != "done" for move in answer["moves"])
        if missing:
            raise RoostError(f"{missing:,} of {len(moves):,} moves would not be made")
        return
    names = {each["uuid"]: each["name"] for each in answer["instances"]}
    rows = [{**move, "instance": names.get(move["instance"], move["instance"])} for move in answer["plan"]["moves"]]
    output.print_document(answer, lambda: _lines(rows))
    if answer["outcome"] == "failed":
        raise RoostError(answer["problem"])


def _read_moves(file: str, only: Sequence[int]) -> list[dict[str, Any]]:
    """Return the moves of a plan, or only some of them.

    Raises:
        RoostError: the document has no moves, or not those of ``only``.
    """
    found = read_request_document(file).get("moves")
    if not isinstance(found, list) or not found or not all(isinstance(move, dict) for move in found):
        raise RoostError(f"{file} has no moves: give the output of `roost plan ... --json`")
    if not only:
        return found
    moves = [move for move in found if move.get("number") in only]
    missing = sorted(set(only) - {move["number"] for move in moves})
    if missing:
        raise RoostError(f"{file} has no move {missing[0]}: give numbers of its moves")
    # Users who leave moves out know that the others do not need them.
    return [{**move, "after": [each for each in move.get("after", ()) if each in only]} for move in moves]


def _count_ended(operation: Mapping[str, Any]) -> int:
    return sum(move["state"] not in {"waiting", "moving"} for move in operation["plan"]["moves"])


def _describe_wait(operation: Mapping[str, Any]) -> str:
    """Return what a plan waits for; empty: its moves begin as they can."""
    opens_at_s = operation["plan"]["opens_at_s"]
    return f"waiting for the window at {format_time(opens_at_s)}" if opens_at_s else ""


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    counts = Counter(row["state"] for row in rows)
    total = ", ".join(f"{counts[state]:,} {state}" for state in ("done", "failed", "skipped"))
    return [*_RESULTS.to_lines(rows, "table"), "", total]
