"""Hosts: the list, and one host with its resources, facts and instances."""

from collections.abc import Callable, Mapping
from typing import Any

from roost.cli.output.age import format_time_and_age
from roost.cli.output.list_view import Column, ListView, Row, field
from roost.cli.output.sections import field_lines, part_lines, section, table_section
from roost.cli.views.instance_view import INSTANCES

_Amount = Mapping[str, Any]
# Facts that the summary has already.
_DISABLED = ("is_disabled", "disabled_reason", "disabled_at_s", "disabled_by")


def state_text(node: Row) -> str:
    """Return the state of a node, such as "disabled, up"."""
    state = "disabled" if node["disabled"] else "enabled"
    return f"{state}, {'forced down' if node['forced_down'] else 'up' if node['up'] else 'down'}"


def _capacity(amount: _Amount) -> int:
    """Return a capacity; an older server does not send it."""
    return int(amount.get("capacity", amount["total"] - amount["reserved"]))


def _use_columns(name: str, resource_class: str, head: str) -> tuple[Column, ...]:
    """Return the columns of a resource class.

    They are the use of its capacity as text, for CSV both numbers, and on request the free amount and the used share.
    """

    def read(part: Callable[[_Amount], object]) -> Callable[[Row], object]:
        return lambda row: part(row["resources"][resource_class]) if resource_class in row["resources"] else None

    def share(amount: _Amount) -> float:
        return float(amount["used"] / (_capacity(amount) or 1))

    def text(row: Row) -> str:
        amount = row["resources"].get(resource_class)
        return "-" if amount is None else f"{amount['used']:,} of {_capacity(amount):,}"

    return (
        Column(name=name, head=head, value=read(share), text=text, kind="keep", shown="tables"),
        Column(name=f"{name}_used", value=read(lambda amount: amount["used"]), shown="csv"),
        Column(name=f"{name}_capacity", value=read(_capacity), shown="csv"),
        Column(name=f"{name}_free", value=read(lambda amount: _capacity(amount) - amount["used"]), shown="request"),
        Column(name=f"{name}_share", value=read(lambda amount: round(share(amount), 4)), shown="request"),
    )


HOSTS = ListView(
    nouns="hosts",
    order="host",
    columns=(
        field("host"),
        field("node"),
        Column(name="zone", value=lambda row: row["zones"]),
        Column(name="state", value=state_text, kind="state"),
        field("instances"),
        *_use_columns("vcpu", "VCPU", "VCPU"),
        *_use_columns("memory_mb", "MEMORY_MB", "MiB memory"),
        *_use_columns("disk_gb", "DISK_GB", "GiB disk"),
        Column(name="aggregates", value=lambda row: [each["name"] for each in row["aggregates"]], shown="wide"),
        field("disabled_reason", kind="prose", shown="wide"),
        field("uuid", kind="keep", shown="wide"),
    ),
)

_RESOURCES = ListView(
    nouns="resources",
    columns=(
        field("class"),
        field("total"),
        field("reserved"),
        Column(name="capacity", value=_capacity),
        field("used"),
        Column(name="free", value=lambda row: _capacity(row) - row["used"]),
        Column(
            name="share",
            head="used share",
            value=lambda row: row["used"] / (_capacity(row) or 1),
            text=lambda row: f"{row['used'] / (_capacity(row) or 1):.0%}",
            kind="keep",
        ),
    ),
)


def _disabling_fields(node: Mapping[str, Any]) -> dict[str, str]:
    """Return reason, time and user of a disabled node; an older server sends only the reason."""
    at_s = node.get("disabled_at_s")
    fields = {
        "disabled_reason": node["disabled_reason"],
        "disabled": "" if at_s is None else format_time_and_age(at_s),
        "disabled_by": node.get("disabled_by", ""),
    }
    return {name: text for name, text in fields.items() if text}


def host_lines(node: Mapping[str, Any], instances: list[dict[str, Any]]) -> list[str]:
    """Return a host as sections: summary, resources, facts and instances."""
    summary = {
        "host": node["host"],
        "node": node["node"],
        "state": state_text(node),
        **_disabling_fields(node),
        "zones": node["zones"],
        "aggregates": [each["name"] or each["uuid"] for each in node["aggregates"]],
        "instances": node["instances"],
        "uuid": node["uuid"],
    }
    facts = {name: value for name, value in node["facts"].items() if name not in _DISABLED}
    resources = [{"class": name, **amount} for name, amount in sorted(node["resources"].items())]
    return [
        *field_lines(summary),
        *table_section("resources", _RESOURCES, resources),
        *section("facts", part_lines(facts) if facts else []),
        *table_section("instances", INSTANCES, instances),
    ]
