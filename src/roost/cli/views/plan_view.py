"""Plans of moves, as text."""

from collections.abc import Mapping, Sequence
from typing import Any

from roost.cli.output.list_view import Column, ListView, fault_field, field
from roost.cli.text.plain_text import escape_text


def _percent_column(name: str) -> Column:
    """Return a column of shares."""
    return Column(name=name, value=lambda row: f"{100 * row[name]:.1f} %")


# The first columns of every table of moves.
MOVE_COLUMNS = (
    field("number", head="move"),
    field("instance"),
    field("source", head="from"),
    Column(name="target", head="to", value=lambda row: row["target"] or "-"),
)
_MOVES = ListView(
    nouns="moves",
    columns=(
        *MOVE_COLUMNS,
        Column(name="how", value=lambda row: row["how"].replace("_", "-"), kind="keep"),
        Column(name="memory", value=lambda row: f"{row['memory_mb']:,} MiB" if row["memory_mb"] else "-"),
        Column(name="after", value=lambda row: ", ".join(map(str, row["after"])) or "-"),
        field("reason", kind="prose"),
    ),
)


_EMPTIED = ListView(
    nouns="hosts",
    columns=(
        field("host", head="emptied host"),
        field("moves"),
        Column(name="memory", value=lambda row: f"{row['memory_mb']:,} MiB" if row["memory_mb"] else "-"),
    ),
)
_STAYING = ListView(
    nouns="instances",
    columns=(
        Column(name="instance", head="staying instance", value=lambda row: row["instance"] or "-"),
        field("host"),
        fault_field("problem"),
    ),
)
_SPREAD = ListView(
    nouns="shares",
    columns=(
        field("at", head="spread"),
        *(_percent_column(name) for name in ("deviation", "mean", "fullest", "emptiest")),
    ),
)


_CUT = "the search ended at its limit: a better plan may exist"
_OVER_BUDGET = "the search ended at the time budget of the server (question_budget_s): a better plan may exist"


def room_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return the moves as a table, and the host for the request afterwards."""
    warnings = [escape_text(f"warning: {each}") for each in answer["warnings"]]
    if not answer["host"]:
        return ["no plan", *warnings]
    moves = answer["moves"]
    if not moves:
        return [escape_text(f"{answer['flavor']} fits on {answer['host']} without moves"), *warnings]
    is_least = answer["at_least"] == len(moves)
    bound = "no plan has fewer" if is_least else f"every plan has at least {answer['at_least']:,}"
    return [
        *_move_lines(moves, bound),
        escape_text(f"then {answer['flavor']} fits on {answer['host']}"),
        *warnings,
    ]


def consolidation_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return the emptied hosts and the moves as tables, with the proved bounds."""
    emptied, moves = answer["emptied"], answer["moves"]
    if not emptied:
        return ["no plan"]
    fewest = f"no plan for {_count(len(emptied), 'host')} has fewer"
    if answer["at_least"] < len(moves):
        fewest = f"every plan for {_count(len(emptied), 'host')} has at least {answer['at_least']:,}"
    after = answer["empty"] + len(emptied)
    lines = [
        *_EMPTIED.to_lines(emptied, "table"),
        "",
        *_move_lines(moves, fewest),
        f"{_count(after, 'host')} of {answer['hosts']:,} empty then, {answer['empty']:,} now; {_most(answer)}",
    ]
    return [*lines, *_limit_lines(answer)]


def _most(answer: Mapping[str, Any]) -> str:
    count = len(answer["emptied"])
    if count == answer["wanted"]:
        return "as many as requested"
    if count == answer["at_most"]:
        return "no plan within the moves empties more"
    return f"no plan within the moves empties more than {answer['at_most']:,}"


def drain_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return the emptied hosts, the staying instances and the moves as tables."""
    emptied, moves, staying = answer["emptied"], answer["moves"], answer["staying"]
    lines = [*_EMPTIED.to_lines(emptied, "table"), ""] if emptied else []
    lines += [*_STAYING.to_lines(staying, "table"), ""] if staying else []
    lines += _move_lines(moves, f"{answer['extra']:,} of them to make room") if moves else []
    lines.append(f"{_count(len(emptied), 'host')} of {answer['hosts']:,} empty then")
    return [*lines, *_limit_lines(answer)]


def balance_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return the moves as a table, and the spread before and after them."""
    rows = [{"at": "now", **answer["before"]}, {"at": "then", **answer["after"]}]
    if not answer["moves"]:
        return [*_SPREAD.to_lines(rows[:1], "table"), "", escape_text(answer["problem"])]
    lines = [
        *_MOVES.to_lines(answer["moves"], "table"),
        "",
        *_SPREAD.to_lines(rows, "table"),
        "",
        f"{_totals(answer['moves'])}; used {answer['resource_class']} of {_count(answer['hosts'], 'host')}",
    ]
    return [*lines, *_limit_lines(answer)]


def _limit_lines(answer: Mapping[str, Any]) -> list[str]:
    """Return a line about the limit at which the search ended, if any."""
    if not answer["is_cut"]:
        return []
    return [_OVER_BUDGET if answer["is_over_budget"] else _CUT]


def _move_lines(moves: Sequence[Mapping[str, Any]], bound: str) -> list[str]:
    """Return the moves as a table, with their number, memory and a bound."""
    return [*_MOVES.to_lines(moves, "table"), "", f"{_totals(moves)}; {bound}"]


def _totals(moves: Sequence[Mapping[str, Any]]) -> str:
    memory_mb = sum(move["memory_mb"] for move in moves)
    return f"{_count(len(moves), 'move')}, {memory_mb:,} MiB of memory to copy"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
