"""The exchange and the queues of a server, with the flags of oslo.messaging, and their declaration."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import amqp
import msgspec

from roost.nova.rpc.broker_options import BrokerOptions
from roost.observe import log

# Limits of a queue of copies: messages, and milliseconds without a consumer.
_COPIES_MAX, _COPIES_EXPIRE_MS = 1000, 60_000


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange."""

    name: str
    kind: Literal["topic", "fanout"]
    is_durable: bool = False
    is_auto_delete: bool = False


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue, and its binding to an exchange."""

    name: str
    exchange: Exchange
    routing_key: str
    is_durable: bool = False
    is_auto_delete: bool = False
    arguments: Mapping[str, Any] = {}


def plan_queues(options: BrokerOptions, topic: str, *, fanout_id: str) -> tuple[Queue, Queue, Queue]:
    """Return the queues of a server: of all servers of the topic, of this server, and of its copies of fanout messages.

    Args:
        topic: name of the service, such as ``scheduler``.
        fanout_id: 32 hexadecimal digits, new for each process.

    Source:
        oslo.messaging, impl_rabbit.py: declare_topic_consumer, declare_fanout_consumer.
    """
    is_durable = options.amqp_durable_queues or options.rabbit_quorum_queue
    is_auto_delete = options.amqp_auto_delete
    exchange = Exchange(
        name=options.control_exchange, kind="topic", is_durable=is_durable, is_auto_delete=is_auto_delete
    )
    is_fanout_durable = options.rabbit_transient_quorum_queue
    fanout = Exchange(name=f"{topic}_fanout", kind="fanout", is_durable=is_fanout_durable, is_auto_delete=True)
    arguments = _arguments(options, is_quorum=options.rabbit_quorum_queue)
    fanout_arguments = _arguments(options, is_quorum=is_fanout_durable)
    if options.rabbit_transient_queues_ttl:
        fanout_arguments["x-expires"] = options.rabbit_transient_queues_ttl * 1000
    shared, own = (
        Queue(
            name=name,
            exchange=exchange,
            routing_key=name,
            is_durable=is_durable,
            is_auto_delete=is_auto_delete,
            arguments=arguments,
        )
        for name in (topic, f"{topic}.{options.host}")
    )
    copies = Queue(
        name=f"{topic}_fanout_{fanout_id}",
        exchange=fanout,
        routing_key=topic,
        is_durable=is_fanout_durable,
        arguments=fanout_arguments,
    )
    return shared, own, copies


def plan_copies(options: BrokerOptions, topic: str) -> tuple[Queue]:
    """Return a queue for copies of the messages to all servers of a topic.

    The broker deletes it after the last consumer, and drops the oldest messages of a full one.
    """
    shared, _, _ = plan_queues(options, topic, fanout_id="")
    arguments = {"x-max-length": _COPIES_MAX, "x-expires": _COPIES_EXPIRE_MS}
    queue = Queue(
        name=f"{topic}.{options.host}.copies",
        exchange=shared.exchange,
        routing_key=topic,
        is_auto_delete=True,
        arguments=arguments,
    )
    return (queue,)


def _arguments(options: BrokerOptions, *, is_quorum: bool) -> dict[str, Any]:
    arguments: dict[str, Any] = {"x-ha-policy": "all"} if options.rabbit_ha_queues and not is_quorum else {}
    if is_quorum:
        limits = options.quorum_limits
        values = {
            "x-delivery-limit": limits.delivery_limit,
            "x-max-in-memory-length": limits.max_memory_length,
            "x-max-in-memory-bytes": limits.max_memory_bytes,
        }
        arguments = {"x-queue-type": "quorum", **{name: value for name, value in values.items() if value}}
    return arguments


def declare_queue(channel: amqp.Channel, queue: Queue) -> None:
    """Create an exchange and a queue, unless they exist, and bind them.

    An existing exchange or queue is used as it is, even if its flags differ or this user must not create it; the
    difference is logged.

    Raises:
        amqp.exceptions.AMQPError, OSError: the broker refuses, or is gone.
    """
    exchange = queue.exchange
    _create_or_use(f"exchange {exchange.name}", partial(send_exchange, channel, exchange))
    try:
        _create_or_use(f"queue {queue.name}", partial(send_queue, channel, queue))
    except amqp.exceptions.NotFound:
        # A transient queue on a lost node of a cluster exists, but cannot be used until it is created again.
        channel.queue_delete(queue.name)
        send_queue(channel, queue, passive=False)
    try:
        channel.queue_bind(queue.name, exchange.name, queue.routing_key)
    except amqp.exceptions.AccessRefused as error:
        log.event("rpc_queue_differs", object=f"binding of queue {queue.name}", problem=str(error.reply_text))


def send_exchange(channel: amqp.Channel, exchange: Exchange, *, passive: bool) -> Any:
    """Declare an exchange with its flags.

    Args:
        passive: whether it must exist; its flags are not compared then.

    Raises:
        amqp.exceptions.AMQPError, OSError: the broker refuses, or is gone.
    """
    return channel.exchange_declare(
        exchange.name,
        exchange.kind,
        passive=passive,
        durable=exchange.is_durable,
        auto_delete=exchange.is_auto_delete,
    )


def send_queue(channel: amqp.Channel, queue: Queue, *, passive: bool) -> Any:
    """Declare a queue with its flags; the answer has the numbers of its messages and consumers.

    Args, and errors: as of ``send_exchange``.
    """
    return channel.queue_declare(
        queue.name,
        passive=passive,
        durable=queue.is_durable,
        exclusive=False,
        auto_delete=queue.is_auto_delete,
        arguments=dict(queue.arguments),
    )


def _create_or_use(subject: str, declare: Callable[..., None]) -> None:
    """Create an object; use the existing one if its flags differ. The library opens a closed channel again."""
    try:
        declare(passive=False)
    except (amqp.exceptions.PreconditionFailed, amqp.exceptions.AccessRefused) as error:
        declare(passive=True)
        log.event("rpc_queue_differs", object=subject, problem=str(error.reply_text))
