"""Checks the brokers of the message queue, and the exchange and the queue of nova-scheduler."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import amqp
from msgspec.structs import replace

from roost.errors import first_line
from roost.nova.check.check_finding import Finding, Level, count_of
from roost.nova.rpc.broker_link import LINK_ERRORS, BrokerLink, Timeouts
from roost.nova.rpc.broker_options import BrokerOptions
from roost.nova.rpc.broker_queues import Queue, plan_queues, send_exchange, send_queue

_TOPIC = "scheduler"


def check_broker(options: BrokerOptions, *, timeout_s: float, serves: bool = True) -> list[Finding]:
    """Log in at each broker; look at the exchange and the queue on the first that works.

    Args:
        timeout_s: limit of each step.
        serves: whether calls come from these brokers; otherwise only the logins are checked.
    """
    problems: list[tuple[str, str, str]] = []  # address, found, advice
    found: list[Finding] = []
    objects: list[Finding] | None = None
    for broker in options.brokers:
        link = BrokerLink(
            replace(options, brokers=(broker,)),
            name=f"roost check {options.host}",
            timeouts=Timeouts(connect_s=timeout_s, operation_s=timeout_s),
        )
        try:
            connection = link.open()
            found.append(_finding("ok", _describe_login(options, broker.address)))
            if objects is None:
                objects = list(_check_objects(connection, options)) if serves else []
        except Exception as error:  # noqa: BLE001  # The library has no error of its own for bytes that are not AMQP.
            problems.append((broker.address, *_explain(error, options)))
        finally:
            link.end()
    # One broker of several is enough to serve.
    level: Level = "error" if objects is None and serves else "warning"
    refused = [_finding(level, f"{address}: {problem}", advice) for address, problem, advice in problems]
    return [*found, *refused, *(objects or ())]


def _finding(level: Level, found: str, advice: str = "") -> Finding:
    return Finding(level=level, part="broker", found=found, advice=advice)


def _describe_login(options: BrokerOptions, address: str) -> str:
    if options.tls is None:
        security = "without TLS"
    else:
        security = "with TLS" if options.tls.ca_file else "with TLS, no certificate verified"
    return f"{address}: login works, virtual host {options.virtual_host}, {security}"


def _explain(error: Exception, options: BrokerOptions) -> tuple[str, str]:
    """Return the problem and the advice; the text of a refusal has no password."""
    if isinstance(error, amqp.exceptions.AccessRefused):
        return "the login is refused", "correct user and password in transport_url"
    if isinstance(error, amqp.exceptions.NotAllowed):
        problem = f"no access to the virtual host {options.virtual_host}: {_reply_text(error)}"
        return problem, "correct the end of transport_url, or give the user its permissions there"
    if isinstance(error, LINK_ERRORS):
        tls = "off" if options.tls is None else "on"
        problem = f"cannot be used: {type(error).__name__}: {_reply_text(error)}"
        return problem, f"check address and port in transport_url, and the firewall; TLS is {tls}"
    return f"does not speak AMQP: {type(error).__name__}", "correct address, port and ssl options of transport_url"


def _reply_text(error: Exception) -> str:
    return str(getattr(error, "reply_text", "") or "") or first_line(error)


def _check_objects(connection: Any, options: BrokerOptions) -> Iterator[Finding]:
    shared, *_ = plan_queues(options, _TOPIC, fanout_id="0" * 32)
    exchange = shared.exchange
    yield _check_object(
        connection,
        f"exchange {exchange.name}",
        partial(send_exchange, exchange=exchange),
        missing="correct transport_url if Nova's services run; Roost creates it at its start",
        count=lambda _: "",
    )
    yield _check_object(
        connection,
        f"queue {shared.name}",
        partial(send_queue, queue=shared),
        missing="correct transport_url if nova-scheduler runs; Roost creates it at its start",
        count=_describe_use,
    )
    yield from _check_waiting(connection, shared)


def _check_object(
    connection: Any,
    subject: str,
    declare: Callable[..., Any],
    *,
    missing: str,
    count: Callable[[Any], str],
) -> Finding:
    """Look at an object, and compare its flags with the options.

    A passive declaration finds the object, but does not compare. Only for an object that it has found, a full
    declaration follows: for an existing object, it compares and changes nothing.
    """
    try:
        use = count(declare(connection.channel(), passive=True))
    except amqp.exceptions.NotFound:
        return _finding("warning", f"{subject} does not exist", missing)
    except amqp.exceptions.AccessRefused as error:
        return _finding("error", f"{subject}: {_reply_text(error)}", "give the user its permissions")
    try:
        declare(connection.channel(), passive=False)
    except amqp.exceptions.PreconditionFailed as error:
        advice = "set [oslo_messaging_rabbit] as for nova-scheduler; Roost uses the existing one as it is"
        return _finding("warning", f"{subject} differs from the options: {_reply_text(error)}{use}", advice)
    except amqp.exceptions.AccessRefused as error:
        advice = f"let the user create {_TOPIC}.HOST and {_TOPIC}_fanout*; Roost uses the existing one as it is"
        return _finding("warning", f"{subject}: {_reply_text(error)}{use}", advice)
    return _finding("ok", f"{subject} exists, with the flags of the options{use}")


def _describe_use(answer: Any) -> str:
    return f": {count_of(answer.consumer_count, 'consumer')}, {count_of(answer.message_count, 'message')}"


def _check_waiting(connection: Any, queue: Queue) -> Iterator[Finding]:
    try:
        answer = connection.channel().queue_declare(queue.name, passive=True)
    except amqp.exceptions.AMQPError:
        return  # Reported already.
    if answer.message_count and not answer.consumer_count:
        found = f"queue {queue.name}: {count_of(answer.message_count, 'message')} and no consumer"
        yield _finding("warning", found, "start a scheduler soon; Roost answers these calls first, also late ones")
