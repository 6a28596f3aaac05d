"""Operations, their instances, and the moves of a drain or an evacuation."""

from collections.abc import Mapping
from typing import Any

from roost.cli.output.age import format_time_and_age
from roost.cli.output.list_view import Column, ListView, Row, fault_field, field, time_field
from roost.cli.output.sections import field_lines, table_section
from roost.cli.views.instance_view import STORY


def _outcome(row: Row) -> str:
    if row["outcome"] == "open" and row["is_cancelled"]:
        return "cancelled"
    drain = row.get("drain")
    return "paused" if drain and drain["is_paused"] else str(row["outcome"])


OPERATIONS = ListView(
    nouns="operations",
    columns=(
        time_field("created", head="requested"),
        field("kind", kind="keep"),
        Column(name="outcome", value=_outcome, kind="state"),
        field("step"),
        Column(name="instance", value=lambda row: row["instance_name"] or row["instance"]),
        field("parent", kind="keep", shown="wide"),
        time_field("changed", shown="wide"),
        field("uuid", kind="keep"),
        fault_field("problem"),
    ),
)


def _list_results(last: str) -> ListView:
    """Return the view of the instances of a finished operation; its last column is an error of the rows."""
    columns = (field("name"), field("status", kind="state"), field("host"), field("uuid", kind="keep"))
    return ListView(nouns="instances", columns=(*columns, fault_field(last)))


RESULTS = _list_results("fault")
DRAINED = _list_results("problem")
PLANNED_MOVES = ListView(
    nouns="instances",
    columns=(
        field("name"),
        field("status", kind="state"),
        Column(name="how", value=lambda row: row["how"].replace("_", "-") or "stays", kind="state"),
        field("host", head="to"),
        field("uuid", kind="keep"),
        fault_field("problem"),
    ),
)
EVACUATED = ListView(
    nouns="instances",
    columns=(
        field("name"),
        field("uuid", kind="keep"),
        field("outcome", kind="state"),
        field("host"),
        fault_field("problem"),
    ),
)
_ORDERS = ListView(
    nouns="orders",
    columns=(
        field("number", head="order"),
        field("host"),
        field("action"),
        field("state", kind="state"),
        field("outcome", kind="state"),
        fault_field("problem"),
    ),
)


_ACCEPTED = ListView(nouns="instances", columns=(field("name"), field("uuid", kind="keep")))


def build_lines(answer: Mapping[str, Any], name: str) -> list[str]:
    """Return an accepted request for instances: its fields, and one row for each instance."""
    names = [name if number == 1 else f"{name}-{number}" for number in range(1, len(answer["instances"]) + 1)]
    rows = [{"name": each, "uuid": uuid} for each, uuid in zip(names, answer["instances"], strict=True)]
    fields = {field: value for field, value in answer.items() if field != "instances"}
    return [*field_lines(fields), *table_section("instances", _ACCEPTED, rows)]


def operation_lines(operation: Mapping[str, Any]) -> list[str]:
    """Return one operation as sections: fields, instances, orders and story."""
    summary = {
        name: operation.get(name) for name in ("uuid", "kind", "outcome", "step", "problem", "project_id", "user_id")
    }
    summary["cancelled"] = operation["is_cancelled"]
    summary["created"] = format_time_and_age(operation["created_at_s"])
    summary["changed"] = format_time_and_age(operation["changed_at_s"])
    lines = [*field_lines(summary), *table_section("instances", RESULTS, operation["instances"])]
    lines += table_section("orders", _ORDERS, operation["orders"])
    return lines + table_section("story", STORY, operation["story"])


def stay_advice(row: Mapping[str, Any], *, is_decided: bool) -> str:
    """Return the remedy for an instance that stays on a host that is drained, as a sentence.

    Args:
        row: its name, status, and the problem.
        is_decided: whether a decision for its move is stored.
    """
    name, status = row["name"], row["status"]
    match status:
        case "VERIFY_RESIZE":
            return f"end its resize with `roost instance confirm {name}` or `revert`, then drain again"
        case "ERROR":
            return f"try `roost instance reset {name}` or `rebuild`, or delete it, then drain again"
        case "BUILD":
            return "wait until it is built, then drain again"
    if "its task is" in row["problem"]:
        return "wait until its task ends, then drain again"
    if not is_decided:
        remedy = "make room, as `roost plan drain` can plan, or change what it requests"
        return f"{remedy}; after the drain, `roost why {name}` explains the refusal"
    return f"`roost why {name}` explains its last decision and lists changes that would help; then drain again"
