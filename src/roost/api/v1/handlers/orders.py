"""Orders: told to agents that wait for them, and answered."""

from functools import partial

from roost.api.http import Response
from roost.api.v1.agent_registry import AgentRegistry, has_news
from roost.api.v1.call import JSON, Call, json_response, plan_response
from roost.api.v1.long_poll import LongPoll
from roost.api.v1.wakeups import Waiter
from roost.api.v1.wire.decode_body import field_problem
from roost.conductor.agents import agent_protocol
from roost.errors import NotFound, RoostError, quote_value
from roost.model.names import is_text, uuid_bytes
from roost.model.work.orders import Answer, Kept, OrderAnswer, Poll, Polled
from roost.model.work.work_rows import OrderRow
from roost.observe import log
from roost.placement.write_plan import Plan

# Of addresses and disks where guests arrive, in characters.
_PLACE_MAX = 4_096
_NUL_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def poll(call: Call) -> Response | Plan[Response]:
    """Tell agents what they are to do, at once or when there is something."""
    asked = call.body
    assert isinstance(asked, Poll)
    for each in asked.agents:
        call.check_host(each.host)
    if len({each.host.lower() for each in asked.agents}) < len(asked.agents):
        raise field_problem("$.agents", "a host is there twice")
    mark = call.agents.wakeups.mark  # Before it is looked: what comes meanwhile is not missed.
    found = call.agents.poll(call.current, asked)
    if isinstance(found, Plan):
        return plan_response(found, json_response(found.answer))
    if has_news(found) or not asked.wait_s:
        return json_response(found)
    hosts = [each.host.lower() for each in asked.agents]
    late = LongPoll(
        call.agents.wakeups, hosts, mark=mark, wait=partial(_wait_for_orders, agents=call.agents, asked=asked)
    )
    return Response(headers={"content-type": JSON}, stream=late)


def answer(call: Call) -> Response | Plan[Response]:
    """Keep what became of an order."""
    given = call.body
    assert isinstance(given, OrderAnswer)
    number = call.name
    reader = call.agents.reader(call.current)
    order = reader.order(int(number)) if number.isascii() and number.isdecimal() and len(number) < 19 else None
    if order is None:
        raise NotFound("order", number)
    call.check_host(order.host)
    _check_about(order, given)
    said = {name: getattr(given, name) for name in Answer.__struct_fields__}
    # A driver may say anything, and not every database can keep a NUL.
    kept = Answer(**{**said, "problem": given.problem.replace("\0", _NUL_REPLACEMENT)})
    run = uuid_bytes(given.run)
    assert run is not None, "its form was checked"
    found = agent_protocol.answer(reader, order.id, run=run, given=kept, now_s=reader.now_s())
    if isinstance(found, Plan):
        return plan_response(found, json_response(Kept(is_wanted=found.answer)))
    return json_response(Kept(is_wanted=found))


def _check_about(order: OrderRow, given: OrderAnswer) -> None:
    """Refuse an answer that tells of another instance than the order is about, or too much.

    Raises:
        Problem: 400.
    """
    found, prepared = given.found, given.prepared
    for place, told in (("$.found.uuid", found), ("$.prepared.uuid", prepared)):
        if told is not None and uuid_bytes(told.uuid) != order.instance_uuid:
            raise field_problem(place, f"order {order.id} is not about {quote_value(told.uuid)}")
    if prepared is None:
        return
    for name, text in (("address", prepared.address), ("disk", prepared.disk), ("node", prepared.node)):
        if not is_text(text, length_max=_PLACE_MAX):
            raise field_problem(f"$.prepared.{name}", f"it is text of {_PLACE_MAX:,} characters at most, without NUL")


async def _wait_for_orders(waiter: Waiter, *, agents: AgentRegistry, asked: Poll) -> Polled:
    try:
        return await agents.wait_for_work(asked, waiter)
    except RoostError as error:
        # That it is well was said already; whoever asks again is told what is wrong.
        log.event("poll_ends", problem=str(error))
        return Polled()
