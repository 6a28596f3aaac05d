"""The operations reference, generated from the step tables."""

import inspect
from collections.abc import Iterator

from roost.conductor import steps
from roost.conductor.operation.events import REFUSED, Event
from roost.conductor.operation.step_table import Table
from roost.conductor.steps import TABLES

HEAD = """# Steps of operations

This page is generated from the tables in `roost.conductor.steps`; `make golden` writes it.
[The conductor](conductor.md) explains operations, and what happens when hosts, agents or servers fail.

An operation is in one step at a time. When it is due, the conductor finds the *event* of the step, and commits what
the table says for this event. If the table has no row for the event `NOT_YET`, the operation waits.

| event | meaning |
|---|---|
"""
MEANINGS = {
    Event.STARTED: "Nothing was sent in this step yet.",
    Event.NOT_YET: "The answer may still come.",
    Event.DONE: "The host did what was ordered.",
    Event.FAILED: "The host could not carry out the order. Another host, or another try, may succeed.",
    Event.ABORTED: "The host could not carry out the order. No other host and no other try would succeed.",
    Event.HOST_GONE: "The agent of the host is gone, and has not answered.",
    Event.TIMED_OUT: "The agent is there, and has not answered within the limit of the order.",
    Event.HOST_BACK: "A host that was gone is there again.",
    Event.CANCELLED: "A deletion of the instance has cancelled the operation.",
}


def page() -> str:
    """Return the complete page."""
    lines = [f"| `{event.name}` | {MEANINGS[event]} |" for event in Event]
    lines.append(f"| `{REFUSED}` | The scheduler returned an error in place of a decision. |")
    kinds: dict[int, list[str]] = {}
    for kind, table in TABLES.items():
        kinds.setdefault(id(table), []).append(kind)
    for names in kinds.values():
        lines += ["", *_section(names, TABLES[names[0]])]
    return HEAD + "\n".join(lines) + "\n"


def _section(kinds: list[str], table: Table) -> Iterator[str]:
    yield f"## {', '.join(kinds)}"
    yield ""
    module = next((each for each in vars(steps).values() if getattr(each, "TABLE", None) is table), None)
    yield table.about or _plain(module)
    yield ""
    yield "| step | event | what is done | next step |"
    yield "|---|---|---|---|"
    if table.refusal is not None:
        yield _row("choose", f"`{REFUSED}`", table.refusal.handler, table.refusal.then)
    for step, state in table.states.items():
        for events, to in state.events.items():
            names = ", ".join(f"`{event.name}`" for event in events)
            yield _row(step, names, to.handler, to.then)
    if table.cancel is not None:
        yield _row("any", f"`{Event.CANCELLED.name}`", table.cancel.handler, table.cancel.then)


def _row(step: str, events: str, handler: object, then: tuple[str, ...]) -> str:
    summary = _plain(handler).split("\n\n", maxsplit=1)[0].replace("\n", " ")
    return f"| `{step}` | {events} | {summary} | {', '.join(f'`{each}`' for each in then)} |"


def _plain(subject: object) -> str:
    """Return a docstring as Markdown."""
    return inspect.cleandoc(subject.__doc__ or "").replace("``", "`")
