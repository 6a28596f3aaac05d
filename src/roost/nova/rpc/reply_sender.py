"""The sending thread: replies, until the broker confirms them, and signs of life of calls in progress."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import amqp

from roost.nova.rpc.broker_link import BrokerLink, Timeouts
from roost.nova.rpc.envelope import encode_still_working
from roost.nova.rpc.open_calls import OpenCalls
from roost.nova.rpc.rpc_call import Call
from roost.nova.rpc.rpc_monitor import RpcMonitor
from roost.nova.rpc.unconfirmed_messages import UnconfirmedMessages
from roost.observe import log

_RETRY_S_MIN, _RETRY_S_MAX = 0.25, 5.0
# Replies to missing queues that wait for another attempt.
_RETURNED_MAX = 256
_UNCONFIRMED_MAX = 256


@dataclass(slots=True, kw_only=True, eq=False)
class _Reply:
    """A reply, and the attempts to send it."""

    queue: str
    body: bytes
    request_id: str | None
    is_sign: bool = False  # a sign of life, which is never sent again
    has_slot: bool = False
    is_returned: bool = False  # the broker found no queue in the current attempt
    give_up_s: float | None = None  # set when it was returned the first time
    retry_s: float = 0.0
    pause_s: float = _RETRY_S_MIN


class ReplySender:
    """Sends replies: the user of a connection.

    A reply without a confirmation is sent again on the next connection; the caller drops repetitions. A reply whose
    queue is missing is sent again for a time, because after a restart of a broker callers create their queues again.

    Args:
        link: the connection, to see whether the broker blocks it.
        missing_queue_s: time to wait for a missing queue.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        link: BrokerLink,
        *,
        open_calls: OpenCalls,
        monitor: RpcMonitor,
        timeouts: Timeouts,
        missing_queue_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._link, self._open_calls, self._monitor, self._clock = link, open_calls, monitor, clock
        self._missing_queue_s = missing_queue_s
        self._lock = threading.Lock()  # of ``_outbox``; all other fields belong to the thread
        self._outbox: deque[_Reply] = deque()
        self._returned: deque[_Reply] = deque()
        self._unconfirmed: UnconfirmedMessages[_Reply] = UnconfirmedMessages(
            "reply", max_count=_UNCONFIRMED_MAX, confirm_s=timeouts.confirm_s, clock=clock
        )
        self._gone: dict[str, float] = {}  # queues without a caller, and until when this is known
        self._channel: Any = None

    def put(self, call: Call, body: bytes) -> None:
        """Send a reply, together with the slot of its call; for any thread."""
        reply = _Reply(queue=call.reply_queue, body=body, request_id=call.context.request_id, has_slot=True)
        with self._lock:
            self._outbox.append(reply)
        self._link.wake()

    def begin(self, connection: Any) -> None:
        """Open a channel with confirmations."""
        self._channel = channel = connection.channel()
        channel.auto_decode = False
        self._unconfirmed.begin(channel, on_confirm=self._confirm, on_refuse=self._refuse)
        channel.events["basic_return"].add(self._return)

    def turn(self) -> float:
        """Send all due replies and signs of life."""
        now_s = self._clock()
        self._unconfirmed.check(is_blocked=self._link.is_blocked)
        if self._link.is_blocked:
            return float("inf")  # The end of the block is a frame, which ends the wait.
        for call in self._open_calls.take_due():
            body = encode_still_working(call.message_id)
            reply = _Reply(queue=call.reply_queue, body=body, request_id=call.context.request_id, is_sign=True)
            self._publish(reply)
        self._send_again(now_s)
        while not self._unconfirmed.is_full:
            with self._lock:
                if not self._outbox:
                    break
                reply = self._outbox.popleft()
            self._publish(reply)
        retries_s = [reply.retry_s - now_s for reply in self._returned]
        return min(self._open_calls.until_due_s(), *retries_s, float("inf"))

    def _send_again(self, now_s: float) -> None:
        due = [reply for reply in self._returned if reply.retry_s <= now_s]
        for reply in due:
            self._returned.remove(reply)
            self._publish(reply)

    def end(self) -> None:
        """Do nothing: replies without confirmation are lost with their connection."""

    def lose(self) -> None:
        """Keep all replies without confirmation for the next connection, in order."""
        self._channel = None
        again = [reply for reply in self._unconfirmed.take_all() if not reply.is_sign]
        with self._lock:
            self._outbox.extendleft(reversed(again))

    def _publish(self, reply: _Reply) -> None:
        reply.is_returned = False
        self._unconfirmed.add(reply)
        message = amqp.Message(
            reply.body, content_type="application/json", content_encoding="utf-8", delivery_mode=2, priority=0
        )
        self._channel.basic_publish(message, exchange="", routing_key=reply.queue, mandatory=True)

    def _confirm(self, tag: int, multiple: bool) -> None:  # noqa: FBT001  # the library calls it
        for reply in self._unconfirmed.take(tag, is_multiple=multiple):
            if reply.is_returned:
                self._retry_later(reply)
            else:
                self._release(reply)

    def _refuse(self, tag: int, multiple: bool) -> None:  # noqa: FBT001  # the library calls it
        for reply in self._unconfirmed.take(tag, is_multiple=multiple):
            self._retry_later(reply)

    def _return(self, *event: Any) -> None:
        """Note a reply without a queue; its confirmation follows."""
        _, _, queue, message = event  # error, exchange, routing key, message
        body = message.body.encode() if isinstance(message.body, str) else bytes(message.body)
        for reply in self._unconfirmed.messages:
            if reply.queue == queue and reply.body == body:  # Bodies are unique by their ``_unique_id``.
                reply.is_returned = True
                return

    def _retry_later(self, reply: _Reply) -> None:
        """Keep a reply without a queue for another attempt; it no longer occupies the slot of its call."""
        self._release(reply)
        now_s = self._clock()
        if reply.is_sign:
            return
        self._gone = {queue: until_s for queue, until_s in self._gone.items() if until_s > now_s}
        if reply.give_up_s is None:
            reply.give_up_s = now_s + self._missing_queue_s
        if reply.queue in self._gone or now_s >= reply.give_up_s:
            self._gone[reply.queue] = now_s + self._missing_queue_s
            self._drop(reply)
            return
        reply.retry_s, reply.pause_s = now_s + reply.pause_s, min(2 * reply.pause_s, _RETRY_S_MAX)
        self._returned.append(reply)
        if len(self._returned) > _RETURNED_MAX:
            self._drop(self._returned.popleft())

    def _drop(self, reply: _Reply) -> None:
        self._monitor.count_reply("dropped")
        log.event("rpc_reply_dropped", queue=reply.queue, request_id=reply.request_id)

    def _release(self, reply: _Reply) -> None:
        if reply.has_slot:
            reply.has_slot = False
            self._open_calls.release_slot()
