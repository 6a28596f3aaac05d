"""Decisions: the list, and one decision with its hosts and stages."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from roost.cli.output.age import format_time_and_age
from roost.cli.output.list_view import Column, ListView, Row, field, utc_field
from roost.cli.output.sections import field_lines, table_section
from roost.cli.text.plain_text import escape_text
from roost.cli.text.reason_words import reason_words, refusal_words

_HOSTS_SHOWN = 3


def _hosts_text(picks: list[dict[str, Any]]) -> str:
    hosts = [*dict.fromkeys(pick["host"] for pick in picks)]
    more = len(hosts) - _HOSTS_SHOWN
    return ", ".join(hosts[:_HOSTS_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _result(row: Row) -> str:
    return _hosts_text(row["picks"]) if row["outcome"] == "granted" else str(row["reason"])


def _result_words(row: Row) -> str:
    return _result(row) if row["outcome"] == "granted" else refusal_line(row)


DECISIONS = ListView(
    nouns="decisions",
    columns=(
        utc_field("decided", key="decided_at_s"),
        field("outcome", kind="state"),
        field("count", head="instances"),
        field("uuid", kind="keep"),
        Column(name="result", head="hosts or reason", value=_result, text=_result_words, kind="prose"),
    ),
)
_HOSTS = ListView(
    nouns="hosts",
    columns=(
        Column(name="instance", value=lambda row: row["instance_uuid"] or "alternate", kind="keep"),
        field("host"),
        field("node"),
        field("cell"),
    ),
)
_PLANNED = ListView(
    nouns="instances", columns=(field("name"), field("host"), field("node"), field("cell", shown="wide"))
)
_STAGES = ListView(
    nouns="stages",
    columns=(
        field("rule"),
        field("before"),
        field("after"),
        Column(
            name="reason",
            head="refused hosts",
            value=lambda row: row["reason"],
            text=lambda row: reason_words(row["reason"], rule=row["rule"]),
            kind="prose",
        ),
    ),
)


def decision_lines(decision: Mapping[str, Any]) -> list[str]:
    """Return one decision as sections: fields, hosts, alternates and stages."""
    summary = {
        "uuid": decision["uuid"],
        "decided": format_time_and_age(decision["decided_at_s"]),
        "outcome": decision["outcome"],
        "reason": refusal_line(decision),
        "instances": decision["count"],
        "project": decision.get("project_id"),
        "user": decision.get("user_id"),
    }
    hosts = [*decision["picks"], *chain.from_iterable(decision["alternates"].values())]
    lines = [*field_lines(summary), *table_section("hosts", _HOSTS, hosts)]
    return [*lines, *stage_section(decision), *warning_lines(decision)]


def refusal_line(decision: Mapping[str, Any]) -> str:
    """Return the reason of a refused decision in the words of operators; empty: it is granted."""
    stages = ((each["rule"], each["before"] - each["after"], each["reason"]) for each in decision["stages"])
    return refusal_words(decision["reason"], stages)


def plan_lines(decision: Mapping[str, Any], *, name: str) -> list[str]:
    """Return a dry run as sections: the host of each instance, alternates and the check index, and stages."""
    if decision["outcome"] == "refused":
        room = f"would be refused, with room for {decision['found']:,} of {decision['count']:,}"
        return [room, *stage_section(decision), *warning_lines(decision)]
    rows = [
        {**pick, "name": name if number == 1 else f"{name}-{number}"}
        for number, pick in enumerate(decision["picks"], start=1)
    ]
    alternates = [each["host"] for picks in decision["alternates"].values() for each in picks]
    summary = {"alternates": alternates, "check_index": decision["check_index"]}
    lines = [*_PLANNED.to_lines(rows, "table"), "", *field_lines(summary)]
    return [*lines, *stage_section(decision), *warning_lines(decision)]


def stage_section(decision: Mapping[str, Any]) -> list[str]:
    """Return the stages of a decision as a section."""
    return table_section("stages", _STAGES, decision["stages"])


def warning_lines(decision: Mapping[str, Any]) -> list[str]:
    """Return one line per warning of a decision."""
    return [escape_text(f"warning: {each}") for each in decision["warnings"]]
