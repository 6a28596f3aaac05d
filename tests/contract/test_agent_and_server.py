"""A real agent and a real server, connected over HTTP."""

import threading

import msgspec

from roost.model.names import uuid_bytes
from roost.model.work.orders import Answer, OrderBody
from roost.model.work.work_rows import Put
from roost.placement.write_plan import Plan
from tests.contract.agents_over_http import HOST, http_server, running_agent
from tests.support.agents.scripted_agents import spec
from tests.support.conductors.work_rows import operation, order
from tests.support.fleets.named_uuids import uuid_named
from tests.support.wait import wait_until


def put(own, *rows):
    own.serving.run(lambda _current: Plan(answer=None, work=tuple(map(Put, rows))))


def row_of(own, number):
    return own.serving.run(lambda current: own.agents.reader(current).order(number))


def test_order_is_executed_and_answered_once():
    with http_server() as (own, placement, url), running_agent(url) as driver:
        created = placement.post("/resource_providers", {"name": HOST, "uuid": uuid_named(HOST)})
        assert created.status == 200
        wait_until(lambda: own.get(f"/agents/{HOST}").status == 200)
        body = msgspec.json.encode(OrderBody(operation=uuid_named("guest 1"), guest=spec("guest"), limit_s=60.0))
        instance = uuid_bytes(uuid_named("guest"))
        put(own, operation(1), order(1, host=HOST, instance_uuid=instance, turn=1, body=body))
        row = wait_until(lambda: (found := row_of(own, 1)).state == "answered" and found)
        assert msgspec.json.decode(row.answer, type=Answer).outcome == "ok"
        assert [(guest.uuid, guest.state) for guest in driver.guests()] == [(uuid_named("guest"), "running")]
        destroy = msgspec.json.encode(OrderBody(operation=uuid_named("guest 2")))
        put(
            own,
            operation(2),
            order(2, operation_id=2, host=HOST, instance_uuid=instance, turn=2, action="destroy", body=destroy),
        )
        wait_until(lambda: row_of(own, 2).state == "answered")
        assert driver.guests() == []
        wait_until(lambda: own.get(f"/hosts/{HOST}").status == 200)


def test_agent_ends_after_leaving_an_unreachable_server(capfd):
    with http_server() as (_, _, url):
        pass
    before, logs = threading.active_count(), []
    with running_agent(url):
        wait_until(lambda: logs.append(capfd.readouterr().err) or '"event":"server_is_away"' in "".join(logs))
    wait_until(lambda: threading.active_count() <= before)
