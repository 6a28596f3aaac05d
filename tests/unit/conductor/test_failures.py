"""Failed builds in a row disable a service, with a reason, until an operator enables it."""

from dataclasses import replace

import msgspec
import pytest

from roost.fleet.host_writes import ServiceChange, apply_service_change, rows_of_service, writes_of_facts
from roost.placement.write_plan import Plan
from tests.support.conductors.builders import ladder
from tests.support.conductors.conductors import TERMS, failed, hand, served, server

REASON = "Auto-disabled due to 3 build failures"


@pytest.fixture
def here():
    with server(None, ladder(1)) as here:
        here.terms = replace(TERMS, failed_builds_max=3)
        yield here


def facts(here):
    return here.run(lambda _current: here.roost.state.hosts.facts[0])


def set_service(here, **change):
    def task(current):
        rows = rows_of_service(current.state, "h0")
        new_facts = apply_service_change(current.state, rows, ServiceChange(**change))
        return Plan(answer=None, writes=writes_of_facts(current.state, rows, new_facts))

    here.run(task)


def build(here, agent, name, *answers):
    here.build(name, key=f"build {name}", force_hosts=("h0",), vcpus=0)
    served(here, agent, script={"h0": answers})


def disable_events(here):
    rows = here.reader.events_since(0.0, most=999)
    return [msgspec.json.decode(row.body) for row in rows if row.kind == "service.disabled"]


def test_every_three_failed_builds_in_a_row_disable_the_service(here):
    agent = hand(here, "h0")
    for name in ("a", "b"):
        build(here, agent, name, failed())
    assert (facts(here).failed_builds, facts(here).is_disabled, disable_events(here)) == (2, False, [])
    build(here, agent, "c", failed())
    assert (facts(here).is_disabled, facts(here).disabled_reason) == (True, REASON)
    assert disable_events(here) == [{"host": "h0", "reason": REASON}]
    assert agent.poll().disabled == ("h0",)
    set_service(here, is_disabled=False)
    for name in ("d", "e"):
        build(here, agent, name, failed())
    assert not facts(here).is_disabled
    build(here, agent, "f", failed())
    assert facts(here).disabled_reason == "Auto-disabled due to 6 build failures"


def test_successful_build_resets_the_count(here):
    agent = hand(here, "h0")
    for name, answers in {"a": [failed()], "b": [failed()], "c": [], "d": [failed()], "e": [failed()]}.items():
        build(here, agent, name, *answers)
    assert (facts(here).failed_builds, facts(here).is_disabled) == (2, False)


def test_failed_builds_of_one_request_disable_the_service(here):
    agent = hand(here, "h0")
    here.build(*"abcde", force_hosts=("h0",), vcpus=0)
    served(here, agent, script={"h0": [failed()] * 5})
    assert (facts(here).failed_builds, facts(here).disabled_reason) == (5, REASON)


def test_service_disabled_by_an_operator_keeps_its_reason(here):
    agent = hand(here, "h0")
    for name in "ab":
        build(here, agent, name, failed())
    here.build("c", key="build c", force_hosts=("h0",))
    here.turn()
    set_service(here, is_disabled=True, disabled_reason="new memory")
    served(here, agent, script={"h0": [failed()]})
    assert (facts(here).failed_builds, facts(here).disabled_reason, disable_events(here)) == (3, "new memory", [])


def test_limit_of_zero_never_disables_the_service(here):
    here.terms = replace(TERMS, failed_builds_max=0)
    agent = hand(here, "h0")
    for name in "abc":
        build(here, agent, name, failed())
    assert (facts(here).failed_builds, facts(here).is_disabled) == (3, False)
