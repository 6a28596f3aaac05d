"""The agent of a host and the server that it asks, both as they are, over HTTP."""

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
from tests.support.waiting import until


def put(own, *rows):
    own.serving.run(lambda _current: Plan(answer=None, work=tuple(map(Put, rows))))


def row_of(own, number):
    return own.serving.run(lambda current: own.agents.reader(current).order(number))


def test_what_a_server_orders_an_agent_does_and_says_once():
    with http_server() as (own, placement, url), running_agent(url) as driver:
        made = placement.post("/resource_providers", {"name": HOST, "uuid": uuid_named(HOST)})
        assert made.status == 200
        until(lambda: own.get(f"/agents/{HOST}").status == 200)
        body = msgspec.json.encode(OrderBody(operation=uuid_named("guest 1"), guest=spec("guest"), limit_s=60.0))
        instance = uuid_bytes(uuid_named("guest"))
        put(own, operation(1), order(1, host=HOST, instance_uuid=instance, turn=1, body=body))
        row = until(lambda: (found := row_of(own, 1)).state == "answered" and found)
        assert msgspec.json.decode(row.answer, type=Answer).outcome == "ok"
        assert [(guest.uuid, guest.state) for guest in driver.guests()] == [(uuid_named("guest"), "running")]
        gone = msgspec.json.encode(OrderBody(operation=uuid_named("guest 2")))
        put(
            own,
            operation(2),
            order(2, operation_id=2, host=HOST, instance_uuid=instance, turn=2, action="destroy", body=gone),
        )
        until(lambda: row_of(own, 2).state == "answered")
        assert driver.guests() == []
        until(lambda: own.get(f"/hosts/{HOST}").status == 200)


def test_an_agent_that_leaves_a_server_that_is_away_ends(capfd):
    with http_server() as (_, _, url):
        pass
    before, said = threading.active_count(), []
    with running_agent(url):
        until(lambda: said.append(capfd.readouterr().err) or '"event":"server_is_away"' in "".join(said))
    until(lambda: threading.active_count() <= before)
