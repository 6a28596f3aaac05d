"""Finished operations, and the moves of a drain or an evacuation: one row per instance."""

from roost.cli.output.list_view import Column, ListView, fault_field, field

RESULTS = ListView(
    nouns="instances",
    columns=(
        field("name"),
        field("status", kind="state"),
        field("host"),
        field("uuid", kind="keep"),
        fault_field("fault"),
    ),
)
DRAINED = ListView(
    nouns="instances",
    columns=(
        field("name"),
        field("status", kind="state"),
        field("host"),
        field("uuid", kind="keep"),
        fault_field("problem"),
    ),
)
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
