"""Instances and operations as text."""

from typing import Any

from roost.cli.text.plain_text import format_time
from roost.cli.text.tables import Table, align, fields, format_list

_SEPARATE = ("attempts", "migrations", "operations", "story")


def instances_text(instances: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a list of instances."""
    table: Table = [("name", "status", "task", "host", "uuid")]
    for each in instances:
        table.append(
            (each["name"] or "-", each["status"] or "claim", each["task"] or "-", each["host"] or "-", each["uuid"])
        )
    return format_list(table, nouns="instances", right=())


def instance_text(instance: dict[str, Any], decision: dict[str, Any] | None) -> list[str]:
    """Return the lines of one instance: fields, decision, build attempts, moves and story.

    Args:
        decision: the decision that chose its host, if stored.
    """
    summary = {name: value for name, value in instance.items() if name not in _SEPARATE}
    summary["status"] = instance["status"] or "claim"
    for name in ("created_at_s", "changed_at_s"):
        value = summary.pop(name)
        summary[name.removesuffix("_s")] = None if value is None else format_time(value)
    lines = fields(summary)
    if decision is not None:
        lines += ["", f"decided {format_time(decision['decided_at_s'])}: {_decision_text(decision)}"]
    if instance["attempts"]:
        attempts: Table = [("host", "node", "claim", "problem")]
        attempts += [
            (each["host"], each["node"], each["claim"], each["problem"] or "-") for each in instance["attempts"]
        ]
        lines += ["", "build attempts:", *align(attempts, indent=0, right=())]
    if instance["migrations"]:
        moves: Table = [("move", "status", "from", "to", "uuid")]
        moves += [
            (each["kind"], each["status"], each["source_host"], each["target_host"] or "-", each["uuid"])
            for each in instance["migrations"]
        ]
        lines += ["", *align(moves, indent=0, right=())]
    return lines + _story(instance["story"])


def operation_text(operation: dict[str, Any]) -> list[str]:
    """Return the lines of a finished operation: one per instance."""
    table: Table = [("name", "status", "host", "uuid", "fault")]
    for each in operation["instances"]:
        row = (each["name"], each["status"], each["host"] or "-", each["uuid"], each["fault"] or "-")
        table.append(row)
    return align(table, indent=0, right=())


def _decision_text(decision: dict[str, Any]) -> str:
    if decision["outcome"] != "granted":
        return f"refused, {decision['reason']}"
    alternates = [each["host"] for cell in decision["alternates"].values() for each in cell]
    return f"granted, with the alternates {', '.join(alternates)}" if alternates else "granted, without alternates"


def _story(story: list[dict[str, Any]]) -> list[str]:
    if not story:
        return []
    table: Table = [("time", "event", "details")]
    for each in story:
        more = "; ".join(f"{name} {text}" for name, text in each["told"].items())
        table.append((format_time(each["at_s"]), each["kind"], more or "-"))
    return ["", *align(table, indent=0, right=())]
