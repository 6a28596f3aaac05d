"""The receiving thread: its queues, receipts, and the limit of open calls."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from roost.nova.rpc.broker_queues import Queue, declare_queue
from roost.nova.rpc.call_intake import CallIntake
from roost.nova.rpc.envelope import MalformedMessage, Message, decode
from roost.nova.rpc.open_calls import OpenCalls
from roost.nova.rpc.rpc_monitor import RpcMonitor
from roost.observe import log

# Messages of each queue that the broker may send before the receipt of earlier ones. Messages that wait for a slot have
# no receipt, so this also limits their number, and another server of the topic can take the rest.
PREFETCH = 16


class CallReceiver:
    """Receives messages: the user of a connection.

    The broker gets a receipt for a message before its work begins, so a message is worked on at most once. A call that
    arrives while all slots are occupied waits here without a receipt; if this process ends, another server gets it.

    Args:
        queues: the queues; the last one is deleted at the end.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        queues: Sequence[Queue],
        intake: CallIntake,
        *,
        open_calls: OpenCalls,
        monitor: RpcMonitor,
        clock: Callable[[], float],
    ) -> None:
        self._queues = queues
        self._intake, self._open_calls, self._monitor, self._clock = intake, open_calls, monitor, clock
        self._channel: Any = None
        self._tags: list[str] = []
        self._waiting: deque[tuple[int, Message, float]] = deque()
        self._is_ending = False

    def begin(self, connection: Any) -> None:
        """Declare the queues and consume from them."""
        self._channel = channel = connection.channel()
        channel.auto_decode = False  # The sender of a message would choose the decoder.
        for queue in self._queues:
            declare_queue(channel, queue)
        channel.basic_qos(0, PREFETCH, False)
        self._tags = [channel.basic_consume(queue.name, callback=self._receive) for queue in self._queues]

    def turn(self) -> float:
        """Take waiting calls while slots are free."""
        while self._waiting and not self._open_calls.is_full:
            self._accept(*self._waiting.popleft())
        return float("inf")

    def end(self) -> None:
        """Stop consuming; waiting messages return to their queues when the connection closes."""
        self._is_ending = True
        for tag in self._tags:
            self._channel.basic_cancel(tag)
        # Otherwise it would collect casts until it expires.
        self._channel.queue_delete(self._queues[-1].name)

    def lose(self) -> None:
        """Forget messages without receipt: the broker delivers them again."""
        self._channel = None
        self._tags = []
        self._waiting.clear()

    def _receive(self, delivery: Any) -> None:
        if self._is_ending:
            return  # Without a receipt, it returns to its queue.
        tag = delivery.delivery_info["delivery_tag"]
        body = delivery.body
        try:
            message = decode(body.encode(errors="replace") if isinstance(body, str) else bytes(body))
        except MalformedMessage as error:
            self._channel.basic_ack(tag)
            self._monitor.count_message("malformed")
            queue = delivery.delivery_info["routing_key"]
            log.event("rpc_message_malformed", queue=str(queue)[:255], problem=str(error))
            return
        received_s = self._clock()
        if message.needs_reply and (self._waiting or self._open_calls.is_full):
            self._waiting.append((tag, message, received_s))
        else:
            self._accept(tag, message, received_s)

    def _accept(self, tag: int, message: Message, received_s: float) -> None:
        # If this fails, the message was not taken, and the broker delivers it again.
        self._channel.basic_ack(tag)
        self._intake.take(message, received_s=received_s)
