"""Failed builds in a row disable a service, with a reason, until an operator enables it."""

from dataclasses import replace

import msgspec
import pytest

from roost.fleet.host_writes import ServiceChange, apply_service_change, rows_of_service, writes_of_service
from roost.model.work.change_query import ChangeQuery
from roost.placement.write_plan import Plan
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import TERMS, failure, played_agent, run_until_idle, server

REASON = "Auto-disabled due to 3 build failures"


@pytest.fixture
def app():
    with server(None, ladder(1)) as app:
        app.terms = replace(TERMS, failed_builds_max=3)
        yield app


def facts(app):
    return app.run(lambda _current: app.roost.state.hosts.facts[0])


def set_service(app, **change):
    def task(current):
        rows = rows_of_service(current.state, "h0")
        new_facts = apply_service_change(current.state, rows, ServiceChange(**change))
        return Plan(answer=None, writes=writes_of_service(current.state, rows, new_facts))

    app.run(task)


def build(app, agent, name, *answers):
    app.build(name, key=f"build {name}", force_hosts=("h0",), vcpus=0)
    run_until_idle(app, agent, script={"h0": answers})


def disable_events(app):
    rows = app.reader.events_since(0.0, limit=999)
    return [msgspec.json.decode(row.body) for row in rows if row.kind == "service.disabled"]


def test_every_three_failed_builds_in_a_row_disable_the_service(app):
    agent = played_agent(app, "h0")
    for name in ("a", "b"):
        build(app, agent, name, failure())
    assert (facts(app).failed_builds, facts(app).is_disabled, disable_events(app)) == (2, False, [])
    build(app, agent, "c", failure())
    assert (facts(app).is_disabled, facts(app).disabled_reason) == (True, REASON)
    assert disable_events(app) == [{"host": "h0", "reason": REASON}]
    (record,) = app.reader.changes(ChangeQuery(kinds=("host.disable",)))
    assert (record.object, record.user_id, msgspec.json.decode(record.body)) == ("h0", "", {"reason": REASON})
    assert agent.poll().disabled == ("h0",)
    set_service(app, is_disabled=False)
    for name in ("d", "e"):
        build(app, agent, name, failure())
    assert not facts(app).is_disabled
    build(app, agent, "f", failure())
    assert facts(app).disabled_reason == "Auto-disabled due to 6 build failures"


def test_successful_build_resets_the_count(app):
    agent = played_agent(app, "h0")
    for name, answers in {"a": [failure()], "b": [failure()], "c": [], "d": [failure()], "e": [failure()]}.items():
        build(app, agent, name, *answers)
    assert (facts(app).failed_builds, facts(app).is_disabled) == (2, False)


def test_failed_builds_of_one_request_disable_the_service(app):
    agent = played_agent(app, "h0")
    app.build(*"abcde", force_hosts=("h0",), vcpus=0)
    run_until_idle(app, agent, script={"h0": [failure()] * 5})
    assert (facts(app).failed_builds, facts(app).disabled_reason) == (5, REASON)


def test_service_disabled_by_an_operator_keeps_its_reason(app):
    agent = played_agent(app, "h0")
    for name in "ab":
        build(app, agent, name, failure())
    app.build("c", key="build c", force_hosts=("h0",))
    app.turn()
    set_service(app, is_disabled=True, disabled_reason="new memory")
    run_until_idle(app, agent, script={"h0": [failure()]})
    assert (facts(app).failed_builds, facts(app).disabled_reason, disable_events(app)) == (3, "new memory", [])


def test_limit_of_zero_never_disables_the_service(app):
    app.terms = replace(TERMS, failed_builds_max=0)
    agent = played_agent(app, "h0")
    for name in "abc":
        build(app, agent, name, failure())
    assert (facts(app).failed_builds, facts(app).is_disabled) == (3, False)
