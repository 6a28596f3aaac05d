"""Movable instances of plans, and the reasons why others stay."""

from contextlib import closing

import pytest

from roost.conductor.intake.movable_instances import immovable_instances, movable_instances
from roost.conductor.operation.row_changes import next_version, replace_row
from roost.placement.write_plan import Plan
from tests.support.conductors.conductors import played_agent, run_until_idle, server
from tests.support.fleets.worlds import hosts


@pytest.fixture
def app():
    """Return a server with two instances on its only host."""
    with server(None, hosts(1)) as app:
        app.hand = played_agent(app, "h0")
        for name in ("one", "two"):
            app.build(name, key=name)
        run_until_idle(app, app.hand)
        yield app


def names_on(app, host, *, may_move=lambda _status: True):
    """Return the names of the movable instances, and name and problem of the others."""

    def read(current):
        with closing(current.store.work_reader(app.clock)) as reader:
            movable = movable_instances(reader, current.store.document, may_move=may_move)(host)
            fixed = immovable_instances(reader, may_move=may_move)(host)
        return [each.name for each in movable], [(each.name, each.problem) for each in fixed]

    return app.run(read)


def test_each_instance_moves_or_has_a_reason(app):
    assert names_on(app, "h0") == (["one", "two"], [])
    after = next_version(app.status("one"), status="ERROR")
    app.run(lambda _current: Plan(answer=None, work=(replace_row(after),)))
    assert names_on(app, "h0") == (["two"], [("one", "an instance in status ERROR is not moved")])


def test_instances_of_other_projects_are_counted_only(app):
    assert names_on(app, "h0", may_move=lambda _status: False) == (
        [],
        [("", "2 instances belong to other projects")],
    )


def test_instances_without_a_living_agent_stay(app):
    app.hand.leave()
    problem = "the agent of h0 does not answer: its instances can only be evacuated"
    assert names_on(app, "h0") == ([], [("one", problem), ("two", problem)])
