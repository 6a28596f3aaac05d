"""A request takes the steps that docs/conductor.md lists."""

import importlib
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.conductors.builders import ScriptedBuilder, conductor, ladder
from tests.support.fleets.worlds import roost_with, small_request

PAGE = Path(__file__).parents[3] / "docs" / "conductor.md"
EVENTS = {"is called": "call", "returns": "return"}
STEPS = [
    ("build-spec", "conductor"),
    ("send-spec", "conductor"),
    ("send-reqs", "scheduler"),
    ("query", "placement"),
    ("return-rps", "placement"),
    ("create", "scheduler"),
    ("filter", "scheduler"),
    ("claim", "placement"),
    ("return-hosts", "scheduler"),
    ("send-hosts", "conductor"),
]


class Step(NamedTuple):
    """A row of the table in the document."""

    name: str
    lane: str
    function: str
    event: str  # as ``sys.setprofile`` names it


def documented_steps():
    """Return the documented steps, in their order."""
    rows = re.findall(r"^\| ([\w-]+) \| (\w+) \| `([\w.]+)` \| ([\w ]+) \|$", PAGE.read_text(), re.MULTILINE)
    return [Step(name, lane, function, EVENTS[moment]) for name, lane, function, moment in rows]


def code_of(function):
    """Return the code object of a function, by its full name."""
    parts = function.split(".")
    at = next(at for at, part in enumerate(parts) if part[0].isupper() or at == len(parts) - 1)
    target = importlib.import_module(".".join(parts[:at]))
    for part in parts[at:]:
        target = getattr(target, part)
    return target.__code__


@pytest.mark.shows("S163", "S180")
def test_a_request_takes_the_ten_steps_in_their_order():
    steps = documented_steps()
    assert [(step.name, step.lane) for step in steps] == STEPS
    roost = roost_with(ladder(3))
    conductors = conductor(roost, ScriptedBuilder())
    steps_of = {(code_of(step.function), step.event): step.name for step in steps}
    occurrences = {}  # the steps, in the order in which each occurs first

    def follow(frame, event, _):
        name = steps_of.get((frame.f_code, event))
        if name is not None:
            occurrences.setdefault(name)

    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        (outcome,) = conductors.build(small_request())
    finally:
        sys.setprofile(before)
    assert outcome.status == "ACTIVE"
    assert list(occurrences) == [step.name for step in steps]
