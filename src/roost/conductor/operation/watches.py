"""Watches: functions that find the event of a step."""

from collections.abc import Callable
from typing import Any, NamedTuple

from roost.conductor.operation.events import NOT_DONE, STARTED, Event, Reply
from roost.conductor.operation.step import View, answer_of, is_open, order_limit_s
from roost.model.work.work_rows import NO_RUN, OrderRow

# Seconds until a failed order is sent again, and until an absent host is checked again.
PAUSE_S = 10.0


class Watch(NamedTuple):
    """Finds the event of a step.

    Args:
        observe: returns the event, from the view of the operation and its body.
        events: all possible results of ``observe``.
    """

    observe: Callable[[View, Any], Reply]
    events: Event


def silence_problem(host: str) -> str:
    """Return the problem of a host with a silent agent."""
    return f"the agent of {host} does not answer"


def target_problem(view: View, host: str) -> str:
    """Return the reason why an instance cannot be sent to a host; empty: it can.

    Alternates were chosen earlier, so the agents of their hosts may be gone by now.
    """
    agent = view.agent(host)
    if agent is None:
        return f"no agent runs on {host}"
    if view.is_away(host):
        return silence_problem(host)
    return "" if agent.state == "ready" else f"{host} is back, but not clean yet"


def may_run(view: View) -> bool:
    """Return whether an instance may run although it is not ACTIVE; an order to stop it may have failed."""
    return bool(view.status.fault)


def find_reply(view: View, order: OrderRow) -> Reply | None:
    """Return the reply to an order; None: it may still arrive."""
    agent = view.agent(order.host)
    host = order.host if agent is None else agent.name  # in the letter case of the agent
    if not is_open(order):
        answer = answer_of(order)
        if answer.outcome == "ok":
            return Reply(event=Event.DONE, answer=answer)
        event = Event.ABORTED if answer.outcome == "aborted" else Event.FAILED
        return Reply(event=event, problem=answer.problem or f"{host} only reported {answer.outcome}", answer=answer)
    if view.is_away(order.host):
        return Reply(event=Event.HOST_GONE, problem=silence_problem(host))
    return None


def not_yet(until_s: float) -> Reply:
    """Return the reply ``NOT_YET`` with the time of the next check."""
    return Reply(event=Event.NOT_YET, until_s=until_s)


def wait_for_answer(view: View) -> Reply:
    """Return the reply ``NOT_YET`` for a living host, without a deadline for its answer."""
    return not_yet(view.now_s + view.terms.act_timeout_s)


def _start(_view: View, _body: Any) -> Reply:
    return STARTED


def _start_on_host(view: View, _body: Any) -> Reply:
    host = view.status.host
    if view.is_away(host):
        return Reply(event=Event.HOST_GONE, problem=silence_problem(host))
    return STARTED


def _within_limit(view: View, body: Any) -> Reply:
    order = view.orders[-1]
    reply = find_reply(view, order)
    if reply is not None:
        return reply
    limit_at_s = max(body.limit_at_s, _limit_after_restore(view, order, body))
    if view.now_s < limit_at_s:
        return not_yet(limit_at_s)
    agent = view.agent(order.host)
    host = order.host if agent is None else agent.name
    return Reply(event=Event.TIMED_OUT, problem=f"{host} did not answer within {order_limit_s(order):,.0f} s")


def _limit_after_restore(view: View, order: OrderRow, body: Any) -> float:
    """Return the new deadline of an order that was open at the backup; 0: it is not from a restored backup.

    Its host may have carried it out since, and reports this when it has registered again.
    """
    limit_s, agent = order_limit_s(order), view.agent(order.host)
    if agent is None or body.limit_at_s - limit_s >= view.restored_at_s:
        return 0.0
    return limit_s + (view.now_s if agent.run == NO_RUN else agent.registered_at_s)


def _while_alive(view: View, _body: Any) -> Reply:
    return find_reply(view, view.orders[-1]) or wait_for_answer(view)


def _until_done(view: View, body: Any) -> Reply:
    reply = _while_alive(view, body)
    if reply.event in Event.FAILED | Event.ABORTED:
        return retry_after_pause(view, body, reply)
    return reply


def retry_after_pause(view: View, body: Any, reply: Reply) -> Reply:
    """Return ``NOT_YET`` until ``limit_at_s`` of the body, then the reply as ``FAILED``."""
    if view.now_s < body.limit_at_s:
        return not_yet(body.limit_at_s)
    return Reply(event=Event.FAILED, problem=reply.problem, answer=reply.answer)


# The step only sends something; it depends on no host.
AT_ONCE = Watch(_start, Event.STARTED)
# The step sends something to the host of the instance.
ON_HOST = Watch(_start_on_host, Event.STARTED | Event.HOST_GONE)
# The host of the last order must answer by ``limit_at_s`` of the body.
WITHIN_LIMIT = Watch(_within_limit, Event.NOT_YET | Event.DONE | NOT_DONE)
# The host of the last order may answer as long as its agent is there.
WHILE_ALIVE = Watch(_while_alive, Event.NOT_YET | Event.DONE | Event.FAILED | Event.ABORTED | Event.HOST_GONE)
# As ``WHILE_ALIVE``, but a failure counts only after a pause, at ``limit_at_s`` of the body.
UNTIL_DONE = Watch(_until_done, Event.NOT_YET | Event.DONE | Event.FAILED | Event.HOST_GONE)
