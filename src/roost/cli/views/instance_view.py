"""Instances: the list, and one instance with its allocations, decision, build attempts, moves and story."""

from collections.abc import Mapping
from typing import Any

from roost.cli.output.age import format_time_and_age
from roost.cli.output.list_view import Column, ListView, Row, fault_field, field, time_field, utc_field
from roost.cli.output.sections import field_lines, table_section
from roost.cli.text.plain_text import brief_fault, escape_text, format_time

INSTANCES = ListView(
    nouns="instances",
    columns=(
        field("name"),
        Column(name="status", value=lambda row: row["status"] or "claim", kind="state"),
        field("task", kind="keep"),
        field("host"),
        time_field("created"),
        field("node", shown="wide"),
        field("project_id", head="project", shown="wide"),
        field("user_id", head="user", shown="wide"),
        time_field("changed", shown="wide"),
        fault_field("fault", shown="wide"),
        field("uuid", kind="keep"),
    ),
)

_ALLOCATIONS = ListView(nouns="allocations", columns=(field("provider"), field("class"), field("amount")))
_ATTEMPTS = ListView(
    nouns="build attempts",
    columns=(field("host"), field("node"), field("claim", kind="state"), fault_field("problem")),
)
_MOVES = ListView(
    nouns="moves",
    columns=(
        field("kind", head="move"),
        field("status", kind="state"),
        field("source_host", head="from"),
        field("target_host", head="to"),
        field("uuid", kind="keep"),
    ),
)
_OPERATIONS = ListView(
    nouns="operations",
    columns=(field("kind"), field("outcome", kind="state"), time_field("created"), field("uuid", kind="keep")),
)
STORY = ListView(
    nouns="events",
    columns=(
        utc_field("time", key="at_s"),
        field("kind", head="event", kind="keep"),
        Column(
            name="details",
            value=lambda row: "; ".join(f"{name} {brief_fault(text)}" for name, text in row["told"].items()),
            kind="prose",
        ),
    ),
)


def instance_lines(instance: Mapping[str, Any], decision: Mapping[str, Any] | None) -> list[str]:
    """Return one instance as sections.

    Args:
        decision: the decision that chose its host, if stored.
    """
    summary = {
        "name": instance["name"],
        "status": instance["status"] or "claim",
        "task": instance["task"],
        "fault": brief_fault(instance["fault"]),
        "host": instance["host"],
        "node": instance["node"],
        "group": instance.get("group_name") or instance["group"],
        "project": instance["project_id"],
        "user": instance["user_id"],
        "created": format_time_and_age(instance["created_at_s"]),
        "changed": format_time_and_age(instance["changed_at_s"]),
        "operation": instance["operation"],
        "decision": instance["decision"],
        "uuid": instance["uuid"],
    }
    lines = [*field_lines(summary), *allocation_section(instance)]
    if decision is not None:
        text = f"decided {format_time(decision['decided_at_s'])}: {_decision_text(decision)}"
        lines += ["", escape_text(text)]
    lines += table_section("build attempts", _ATTEMPTS, instance["attempts"])
    lines += table_section("moves", _MOVES, instance["migrations"])
    lines += table_section("operations", _OPERATIONS, instance["operations"])
    return lines + table_section("story", STORY, instance["story"])


def allocation_section(consumer: Mapping[str, Any]) -> list[str]:
    """Return the allocations of an instance or a migration, with the names of the providers."""
    names = consumer.get("provider_names", {})
    rows: list[Row] = [
        {"provider": names.get(uuid) or uuid, "class": resource_class, "amount": amount}
        for uuid, amounts in consumer["allocations"].items()
        for resource_class, amount in amounts.items()
    ]
    return table_section("allocations", _ALLOCATIONS, rows)


def _decision_text(decision: Mapping[str, Any]) -> str:
    if decision["outcome"] != "granted":
        return f"refused, {brief_fault(decision['reason'])}"
    alternates = [each["host"] for cell in decision["alternates"].values() for each in cell]
    return f"granted, with the alternates {', '.join(alternates)}" if alternates else "granted, without alternates"
