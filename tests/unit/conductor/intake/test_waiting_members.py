"""Members without allocations prevent the deletion of their server group."""

from contextlib import closing
from dataclasses import replace

import pytest

from roost.conductor.intake.waiting_members import count_waiting
from roost.errors import Conflict
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import TERMS, played_agent, run_until_idle, server
from tests.support.fleets.worlds import group, merge_fleets


@pytest.fixture
def app():
    with server(None, merge_fleets(ladder(3), group("apart", "anti-affinity"), group("other", "affinity"))) as app:
        app.hands = [played_agent(app, f"h{number}") for number in range(3)]
        yield app


def waiting(app, name="apart", **options):
    def count(current):
        uuid = next(each.uuid for each in current.state.groups.values() if each.name == name)
        with closing(current.store.work_reader(app.clock)) as reader:
            return count_waiting(reader, current.store.document, uuid, placed=current.state.holders, **options)

    return app.run(count)


def test_instances_count_until_they_have_allocations(app):
    assert waiting(app) == 0
    app.build("one", key="one", in_group="apart")
    app.build("two", key="two", in_group="other")
    app.build("three", key="three")
    assert (waiting(app), waiting(app, "other")) == (1, 1)
    assert (waiting(app, project_id=app.status("one").project_id), waiting(app, project_id="stranger")) == (1, 0)
    run_until_idle(app, *app.hands)
    assert app.status("one").status == "ACTIVE"
    assert (waiting(app), waiting(app, "other")) == (0, 0)


def test_count_refuses_to_read_too_many_instances(app, monkeypatch):
    monkeypatch.setattr("roost.conductor.intake.waiting_members._EXAMINED_MAX", 2)
    for name in ("one", "two"):
        app.build(name, key=name)
    assert waiting(app) == 0
    app.build("three", key="three")
    with pytest.raises(Conflict, match="more than 2 instances have no host"):
        waiting(app)


def test_offloaded_instance_counts_until_it_is_deleted(app):
    app.build("one", key="one", in_group="apart")
    run_until_idle(app, *app.hands)
    app.terms = replace(TERMS, shelved_offload_time_s=0.0)
    app.change("one", "shelve")
    run_until_idle(app, *app.hands)
    assert app.status("one").status == "SHELVED_OFFLOADED"
    assert (waiting(app), waiting(app, "other")) == (1, 0)
    app.delete("one")
    run_until_idle(app, *app.hands)
    assert app.status("one").status == "DELETED"
    assert waiting(app) == 0
