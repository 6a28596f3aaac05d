"""The server of remote procedure calls: its threads, its start and its stop."""

import threading
import time
import uuid
from collections.abc import Callable

from roost.nova.rpc.broker_link import BrokerLink, Timeouts
from roost.nova.rpc.broker_options import BrokerOptions
from roost.nova.rpc.broker_queues import plan_copies, plan_queues
from roost.nova.rpc.call_intake import CallIntake, Endpoint
from roost.nova.rpc.call_receiver import CallReceiver
from roost.nova.rpc.link_thread import LinkThread, LinkUser
from roost.nova.rpc.open_calls import OpenCalls
from roost.nova.rpc.reply_sender import ReplySender
from roost.nova.rpc.rpc_call import Call
from roost.nova.rpc.rpc_monitor import RpcMonitor, RpcState
from roost.observe import log

# Messages come in on one connection and replies go out on another, because a broker without memory stops reading from
# connections that publish.
_RECEIVER, _SENDER = "receiver", "sender"
_END_S = 5.0


class RpcServer:
    """Serves the calls of a topic.

    Args:
        options: brokers, queues and heartbeats.
        endpoint: the methods. Handlers run in the receiving thread, so they must return quickly; they answer the call
            later, from any thread.
        calls_max: calls in progress, with their unconfirmed replies; further ones stay in their queue.
        timeouts: limits of operations of the connections.
        clock: seconds, monotonic.
        takes_copies: whether to receive copies of the messages to other servers, without any reply.
    """

    def __init__(
        self,
        options: BrokerOptions,
        endpoint: Endpoint,
        *,
        calls_max: int = 64,
        timeouts: Timeouts | None = None,
        clock: Callable[[], float] = time.monotonic,
        takes_copies: bool = False,
    ) -> None:
        timeouts = timeouts or Timeouts()
        self._options, self._clock = options, clock
        self._lock, self._is_stopping = threading.Lock(), False
        self._monitor = monitor = RpcMonitor((_RECEIVER, _SENDER))
        name = f"roost {endpoint.topic} {options.host}"
        receiver_link, sender_link = (
            BrokerLink(options, name=f"{name} {role}", timeouts=timeouts) for role in (_RECEIVER, _SENDER)
        )
        self._open_calls = OpenCalls(
            calls_max, clock=clock, note_count=monitor.set_open_calls, wake_receiver=receiver_link.wake
        )
        self._sender = ReplySender(
            sender_link,
            open_calls=self._open_calls,
            monitor=monitor,
            timeouts=timeouts,
            missing_queue_s=options.missing_queue_s,
            clock=clock,
        )
        intake = CallIntake(
            endpoint,
            open_calls=self._open_calls,
            monitor=monitor,
            respond=self._respond,
            takes_copies=takes_copies,
        )
        receiver = CallReceiver(
            plan_copies(options, endpoint.topic)
            if takes_copies
            else plan_queues(options, endpoint.topic, fanout_id=uuid.uuid4().hex),
            intake,
            open_calls=self._open_calls,
            monitor=monitor,
            clock=clock,
        )
        self._receiving = self._build_thread(receiver_link, receiver, _RECEIVER)
        self._sending = self._build_thread(sender_link, self._sender, _SENDER)

    def _build_thread(self, link: BrokerLink, user: LinkUser, role: str) -> LinkThread:
        return LinkThread(link, user, role=role, options=self._options, monitor=self._monitor, clock=self._clock)

    @property
    def state(self) -> RpcState:
        """The current state."""
        return self._monitor.read()

    def start(self) -> None:
        """Start the threads. They connect in the background, and try again for ever."""
        self._sending.start()
        self._receiving.start()

    def stop(self, wait_s: float) -> None:
        """Stop consuming, let open calls answer within a time, and close the connections.

        Messages that were not taken stay in their queue, for another server. Calls that are still open get no reply. A
        second stop does nothing.
        """
        with self._lock:
            is_first, self._is_stopping = not self._is_stopping, True
        if not is_first:
            return
        end_s = self._clock() + wait_s
        self._receiving.stop(_END_S)
        remaining = self._open_calls.wait_until_idle(max(0.0, end_s - self._clock()))
        if remaining:
            log.event("rpc_calls_left", count=remaining)
        self._sending.stop(_END_S)

    def _respond(self, call: Call, body: bytes | None, has_failed: bool) -> None:  # noqa: FBT001  # only ``Call`` calls it
        if body is None:
            return
        self._open_calls.end(call)
        self._monitor.count_reply("failed" if has_failed else "answered")
        self._sender.put(call, body)
