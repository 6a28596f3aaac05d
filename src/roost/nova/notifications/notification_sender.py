"""The sending thread: notifications wait in a bounded queue, and are repeated until the broker confirms them."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import amqp

from roost.nova.rpc.broker_link import BrokerLink, Timeouts
from roost.nova.rpc.broker_options import BrokerOptions
from roost.nova.rpc.broker_queues import declare_queue, plan_queues
from roost.nova.rpc.link_thread import LinkThread
from roost.nova.rpc.rpc_monitor import RpcMonitor
from roost.nova.rpc.unconfirmed_messages import UnconfirmedMessages
from roost.observe import log
from roost.observe.work_metrics import NOVA_NOTIFICATIONS

_ROLE = "notifier"
# Events that wait for the thread, and the bytes of the calls behind them; further ones are dropped.
_WAITING_MAX, _WAITING_BYTES_MAX = 1000, 32 * 1024 * 1024
_UNCONFIRMED_MAX = 64
_LOG_EVERY_S = 60.0
_END_S = 5.0


class Outgoing(NamedTuple):
    """The body of a message, and the queue for it."""

    queue: str
    body: bytes


class _Waiting(NamedTuple):
    build: Callable[[], Sequence[Outgoing]]
    size: int


class NotificationSender:
    """Sends notifications in a thread of its own: the user of a connection.

    As oslo.messaging does, it creates the queue of a topic, so nothing is lost before the first consumer. It never
    blocks its callers. Without a broker, notifications wait up to the limits, and then new ones are dropped.

    Args:
        options: brokers, and flags of queues.
        name: name of the connection, for the pages of the broker.
        clock: seconds, monotonic.
        timeouts: limits of operations of the connection.
    """

    def __init__(
        self, options: BrokerOptions, *, name: str, clock: Callable[[], float], timeouts: Timeouts | None = None
    ) -> None:
        self._options, self._clock, timeouts = options, clock, timeouts or Timeouts()
        self._link = BrokerLink(options, name=name, timeouts=timeouts)
        self._changed = threading.Condition()  # of all fields up to ``_logged_s``
        self._waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._is_idle = True
        self._dropped, self._problem, self._logged_s = 0, "", float("-inf")
        self._ready: deque[Outgoing] = deque()
        self._unconfirmed: UnconfirmedMessages[Outgoing] = UnconfirmedMessages(
            "notification", max_count=_UNCONFIRMED_MAX, confirm_s=timeouts.confirm_s, clock=clock
        )
        self._declared: set[str] = set()  # queues on the present connection
        self._connection: Any = None
        self._channel: Any = None
        monitor = RpcMonitor((_ROLE,))
        self._thread = LinkThread(self._link, self, role=_ROLE, options=options, monitor=monitor, clock=clock)

    def start(self) -> None:
        """Start the thread. It connects in the background, and tries again for ever."""
        self._thread.start()

    def stop(self, wait_s: float) -> None:
        """Send the waiting messages within a time, and stop the thread; the rest is dropped."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_idle, wait_s)
        self._thread.stop(_END_S)
        with self._changed:
            left = len(self._waiting) + len(self._ready) + len(self._unconfirmed)
            self._waiting.clear()
        if left:
            self._drop("the service stopped", left)
        self._report(is_last=True)

    def put(self, build: Callable[[], Sequence[Outgoing]], *, size: int) -> None:
        """Send the notifications of one event; for any thread.

        Args:
            build: returns the messages; the sending thread calls it once.
            size: bytes of the event in memory.
        """
        with self._changed:
            count = len(self._waiting)
            is_full = count >= _WAITING_MAX or (count > 0 and self._bytes + size > _WAITING_BYTES_MAX)
            if not is_full:
                self._waiting.append(_Waiting(build, size))
                self._bytes += size
                self._is_idle = False
        if is_full:
            self._drop(f"{count:,} events wait already")
        else:
            self._link.wake()

    def begin(self, connection: Any) -> None:
        """Open a channel with confirmations."""
        self._connection = connection
        self._channel = channel = connection.channel()
        self._unconfirmed.begin(channel, on_confirm=self._confirm, on_refuse=self._refuse)
        self._declared.clear()

    def turn(self) -> float:
        """Send the waiting messages, up to the limit of unconfirmed ones."""
        self._unconfirmed.check(is_blocked=self._link.is_blocked)
        while not self._link.is_blocked and not self._unconfirmed.is_full:
            if not self._ready and not self._build_next():
                break
            if self._ready:
                self._publish_next()
        self._report()
        self._note_idle()
        return float("inf")

    def end(self) -> None:
        """Do nothing: ``stop`` has waited for the confirmations."""

    def lose(self) -> None:
        """Keep all messages without confirmation for the next connection, in order."""
        self._connection = self._channel = None
        self._ready.extendleft(reversed(self._unconfirmed.take_all()))

    def _build_next(self) -> bool:
        """Build the messages of the next event; return whether there was one."""
        with self._changed:
            if not self._waiting:
                return False
            waiting = self._waiting.popleft()
            self._bytes -= waiting.size
        try:
            self._ready.extend(waiting.build())
        except Exception as error:  # noqa: BLE001  # Only this event is lost; its text may have a value of the request.
            self._drop(f"an event cannot be described: {type(error).__name__}")
        return True

    def _publish_next(self) -> None:
        outgoing = self._ready[0]
        if outgoing.queue not in self._declared:
            # On a channel of its own: a refusal closes the channel.
            channel = self._connection.channel()
            declare_queue(channel, plan_queues(self._options, outgoing.queue, fanout_id="")[0])
            channel.close()
            self._declared.add(outgoing.queue)
        self._ready.popleft()
        self._unconfirmed.add(outgoing)
        message = amqp.Message(
            outgoing.body,
            content_type="application/json",
            content_encoding="utf-8",
            application_headers={},
            delivery_mode=2,
            priority=0,
        )
        self._channel.basic_publish(message, exchange=self._options.control_exchange, routing_key=outgoing.queue)

    def _confirm(self, tag: int, multiple: bool) -> None:  # noqa: FBT001  # the library calls it
        NOVA_NOTIFICATIONS.labels("sent").inc(len(self._unconfirmed.take(tag, is_multiple=multiple)))
        self._note_idle()

    def _refuse(self, tag: int, multiple: bool) -> None:  # noqa: FBT001  # the library calls it
        self._drop("the broker refused a message", len(self._unconfirmed.take(tag, is_multiple=multiple)))
        self._note_idle()

    def _note_idle(self) -> None:
        with self._changed:
            self._is_idle = not self._waiting and not self._ready and not self._unconfirmed
            if self._is_idle:
                self._changed.notify_all()

    def _drop(self, problem: str, count: int = 1) -> None:
        NOVA_NOTIFICATIONS.labels("dropped").inc(count)
        with self._changed:
            self._dropped += count
            self._problem = problem
        self._report()

    def _report(self, *, is_last: bool = False) -> None:
        """Log the number of dropped notifications, at most once a minute."""
        now_s = self._clock()
        with self._changed:
            if not self._dropped or (now_s - self._logged_s < _LOG_EVERY_S and not is_last):
                return
            count, problem = self._dropped, self._problem
            self._dropped, self._logged_s = 0, now_s
        log.event("nova_notifications_dropped", count=count, problem=problem)
