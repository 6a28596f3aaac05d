"""Orders: delivery to polling agents, and replies."""

from dataclasses import replace
from functools import partial

from roost.api.http import Response
from roost.api.v1.agents.agent_registry import AgentRegistry, has_news
from roost.api.v1.agents.wakeups import Waiter
from roost.api.v1.call import JSON, Call, json_response, plan_response
from roost.api.v1.long_poll import LongPoll
from roost.api.v1.wire.decode_body import field_problem
from roost.conductor.agents import agent_protocol
from roost.errors import NotFound, RoostError, quote_value
from roost.model.names import is_text, uuid_bytes
from roost.model.work.orders import Acknowledgement, Answer, OrderAnswer, Poll, PollAnswer
from roost.model.work.work_rows import OrderRow
from roost.observe import log, work_metrics
from roost.placement.write_plan import Plan

# Maximum length of the addresses and disks that a target reports, in characters.
_PLACE_MAX = 4_096
_NUL_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def poll(call: Call) -> Response | Plan[Response]:
    """Record heartbeats of agents and return their orders, at once or as soon as orders arrive.

    Returns orders, withdrawn orders, and hosts that other runs have taken over. Fails with 400 for a repeated host,
    with 403 for a host outside the token's bounds, with 503 for too many waiting agents.
    """
    request = call.body
    assert isinstance(request, Poll)
    for each in request.agents:
        call.check_host(each.host)
    if len({each.host.lower() for each in request.agents}) < len(request.agents):
        raise field_problem("$.agents", "a host is given twice")
    mark = call.agents.wakeups.mark  # Before the read, so that no commit is missed.
    work = call.agents.poll(call.current, request)
    if isinstance(work, Plan):
        return plan_response(work, json_response(work.answer))
    if has_news(work) or not request.wait_s:
        return json_response(work)
    hosts = [each.host.lower() for each in request.agents]
    stream = LongPoll(
        call.agents.wakeups, hosts, mark=mark, wait=partial(_wait_for_orders, agents=call.agents, request=request)
    )
    return Response(headers={"content-type": JSON}, stream=stream)


def answer(call: Call) -> Response | Plan[Response]:
    """Store the reply of an agent to an order; only the first reply counts.

    Returns whether the order is still wanted; otherwise the agent undoes its work. Fails with 404 for an unknown order,
    with 400 for a reply for another instance, with 403 for a host outside the token's bounds.
    """
    reply = call.body
    assert isinstance(reply, OrderAnswer)
    number = call.name
    reader = call.agents.reader(call.current)
    order = reader.order(int(number)) if number.isascii() and number.isdecimal() and len(number) < 19 else None
    if order is None:
        raise NotFound("order", number)
    call.check_host(order.host)
    _check_about(order, reply)
    fields = {name: getattr(reply, name) for name in Answer.__struct_fields__}
    # A driver may return any text, but PostgreSQL cannot store NUL.
    stored = Answer(**{**fields, "problem": reply.problem.replace("\0", _NUL_REPLACEMENT)})
    run = uuid_bytes(reply.run)
    assert run is not None, "decoding validated it"
    result = agent_protocol.answer(reader, order.id, run=run, reply=stored, now_s=reader.now_s())
    if isinstance(result, Plan):
        count = work_metrics.ORDER_ANSWERS.labels(order.action, reply.outcome).inc
        return replace(plan_response(result, json_response(Acknowledgement(is_wanted=result.answer))), on_commit=count)
    return json_response(Acknowledgement(is_wanted=result))


def _check_about(order: OrderRow, reply: OrderAnswer) -> None:
    """Refuse a reply for another instance, or with texts that are too long.

    Raises:
        Problem: 400.
    """
    found, prepared = reply.found, reply.prepared
    for place, reported in (("$.found.uuid", found), ("$.prepared.uuid", prepared)):
        if reported is not None and uuid_bytes(reported.uuid) != order.instance_uuid:
            raise field_problem(place, f"order {order.id} is for another instance than {quote_value(reported.uuid)}")
    if prepared is None:
        return
    for name, text in (("address", prepared.address), ("disk", prepared.disk), ("node", prepared.node)):
        if not is_text(text, length_max=_PLACE_MAX):
            raise field_problem(f"$.prepared.{name}", f"must be text of at most {_PLACE_MAX:,} characters, without NUL")


async def _wait_for_orders(waiter: Waiter, *, agents: AgentRegistry, request: Poll) -> PollAnswer:
    try:
        return await agents.wait_for_work(request, waiter)
    except RoostError as error:
        # The head with status 200 is sent already; the next poll reports the error.
        log.event("poll_ends", problem=str(error))
        return PollAnswer()
