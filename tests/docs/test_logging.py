"""``docs/logging.md`` against the table of events, and the table against the calls in the source."""

import ast
import re
from pathlib import Path

from roost.api.changes.change_note import KINDS
from roost.observe.log_events import EVENTS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "logging.md").read_text(encoding="utf-8")
# Functions whose first or third argument names an event.
CALLS = {"event": 0, "write": 0, "_log_once": 2}


def names_in(node):
    """Return the names that an argument can have."""
    match node:
        case ast.Constant(value=str(name)):
            return [name]
        case ast.IfExp(body=first, orelse=second):
            return names_in(first) + names_in(second)
    return []


def logged_events():
    """Return the events that the source logs."""
    found = {"request", "fault"}
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            function = call.func
            if isinstance(function, ast.Attribute):
                owner = function.value.id if isinstance(function.value, ast.Name) else ""
                name = function.attr if owner in ("log", "self") else ""
            else:
                name = function.id if path.name == "log.py" and isinstance(function, ast.Name) else ""
            if name in CALLS and len(call.args) > CALLS[name]:
                found.update(names_in(call.args[CALLS[name]]))
    return found


def test_every_logged_event_has_a_level_and_every_event_is_logged():
    assert logged_events() == set(EVENTS)


def test_page_has_each_event_with_its_level_and_meaning():
    rows = re.findall(r"^\| `(\w+)` \| (debug|info|warning|error) \| (.*) \|$", TEXT, re.MULTILINE)
    assert sorted(rows) == sorted((name, event.level, event.meaning) for name, event in EVENTS.items())


def test_page_has_each_kind_of_change():
    assert set(re.findall(r"`(\w+\.\w+)`", TEXT.split("| object | kinds |")[1].split("\n\n")[0])) == KINDS
