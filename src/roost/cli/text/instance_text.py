"""Instances and operations as people read them."""

from typing import Any

from roost.cli.text.plain_text import moment
from roost.cli.text.tables import Table, aligned, fields

_APART = ("attempts", "migrations", "operations", "story")


def instances_text(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a list of instances."""
    table: Table = [("name", "status", "task", "host", "uuid")]
    for each in found:
        table.append(
            (each["name"] or "-", each["status"] or "claim", each["task"] or "-", each["host"] or "-", each["uuid"])
        )
    return aligned(table, indent=0, right=())


def instance_text(found: dict[str, Any], decision: dict[str, Any] | None) -> list[str]:
    """Return the lines of one instance, with the story of its decision and attempts.

    Args:
        decision: that chose its host; None: it is not known.
    """
    told = {name: value for name, value in found.items() if name not in _APART}
    told["status"] = found["status"] or "claim"
    for name in ("created_at_s", "changed_at_s"):
        value = told.pop(name)
        told[name.removesuffix("_s")] = None if value is None else moment(value)
    lines = fields(told)
    if decision is not None:
        lines += ["", f"decided {moment(decision['decided_at_s'])}: {_decided(decision)}"]
    if found["attempts"]:
        attempts: Table = [("host", "node", "claim", "problem")]
        attempts += [(each["host"], each["node"], each["claim"], each["problem"] or "-") for each in found["attempts"]]
        lines += ["", "attempts to build it:", *aligned(attempts, indent=0, right=())]
    if found["migrations"]:
        moves: Table = [("move", "status", "from", "to", "uuid")]
        moves += [
            (each["kind"], each["status"], each["source_host"], each["target_host"] or "-", each["uuid"])
            for each in found["migrations"]
        ]
        lines += ["", *aligned(moves, indent=0, right=())]
    return lines + _story(found["story"])


def operation_text(found: dict[str, Any]) -> list[str]:
    """Return the lines of an operation that is over: its instances, or where there are none what became of it."""
    table: Table = [("name", "status", "host", "uuid", "fault")]
    for each in found["instances"]:
        row = (each["name"], each["status"], each["host"] or "-", each["uuid"], each["fault"] or "-")
        table.append(row)
    return aligned(table, indent=0, right=())


def _decided(decision: dict[str, Any]) -> str:
    if decision["outcome"] != "granted":
        return f"refused, {decision['reason']}"
    alternates = [each["host"] for cell in decision["alternates"].values() for each in cell]
    return f"granted, with the alternates {', '.join(alternates)}" if alternates else "granted, without alternates"


def _story(story: list[dict[str, Any]]) -> list[str]:
    if not story:
        return []
    table: Table = [("when", "what", "more")]
    for each in story:
        more = "; ".join(f"{name} {text}" for name, text in each["told"].items())
        table.append((moment(each["at_s"]), each["kind"], more or "-"))
    return ["", *aligned(table, indent=0, right=())]
