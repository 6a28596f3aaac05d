"""The webhook: sends every event to one URL, without delaying any decision."""

import http.client
import queue
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

from roost import __version__
from roost.model.settings.notification_settings import Notifications
from roost.observe import log, metrics

_BACKOFF_S_MAX = 60.0
# Seconds to send the queued events when the server stops.
_STOP_S = 5.0
_RESPONSE_MAX_BYTES = 64 * 2**10
# Client errors after which another attempt makes sense.
_RETRYABLE = frozenset({408, 425, 429})
_STALE = (ConnectionError, http.client.RemoteDisconnected)


class Webhook:
    """Threads that send the events of a bounded queue.

    A thread sends an event until the response has a status 2xx, with growing pauses. An event is dropped and counted if
    the queue is full, if the receiver refuses the event, or after the last attempt. Events may arrive out of order.

    Args:
        limits: URL, number of threads, and attempts per event.
    """

    def __init__(self, limits: Notifications) -> None:
        self._limits = limits
        self._queue: queue.Queue[bytes | None] = queue.Queue(limits.webhook_queue_max)
        self._is_stopping = threading.Event()
        self._is_failing = False  # as last logged
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._work, name="webhook", daemon=True) for _ in range(limits.webhook_in_flight)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, body: bytes) -> None:
        """Queue an event; callable from any thread, never blocks."""
        try:
            self._queue.put_nowait(body)
        except queue.Full:
            count = self._limits.webhook_queue_max
            self._count_loss("dropped", f"{count:,} events wait already (limit notifications.webhook_queue_max)")

    def close(self) -> None:
        """Try each queued event once more, within a few seconds, and end the threads."""
        self._is_stopping.set()
        deadline_s = time.monotonic() + _STOP_S
        with suppress(queue.Full):  # The receiver accepts no events.
            for _ in self._threads:
                self._queue.put(None, timeout=max(0.0, deadline_s - time.monotonic()))
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        with suppress(queue.Empty):
            while True:
                if self._queue.get_nowait() is not None:
                    self._count_loss("dropped", "the server has stopped")

    def _work(self) -> None:
        link = _Link(self._limits)
        while (body := self._queue.get()) is not None:
            self._deliver(link, body)
        link.close()

    def _deliver(self, link: "_Link", body: bytes) -> None:
        backoff_s = self._limits.webhook_backoff_s
        problem = ""
        for attempt in range(1, self._limits.webhook_attempts + 1):
            if attempt > 1:
                if self._is_stopping.wait(min(backoff_s, _BACKOFF_S_MAX)):
                    break
                backoff_s *= 2
                metrics.WEBHOOK_RETRIES.inc()
            try:
                status = link.post(body)
            except Exception as error:  # noqa: BLE001  # no error of the receiver may end the thread
                link.close()
                problem = str(error) or type(error).__name__
                continue
            if 200 <= status < 300:
                self._count_delivery()
                return
            problem = f"the answer was {status}"
            if status < 500 and status not in _RETRYABLE:
                break
        self._count_loss("failed", problem)

    def _count_delivery(self) -> None:
        metrics.WEBHOOK_EVENTS.labels("delivered").inc()
        with self._lock:
            was_failing, self._is_failing = self._is_failing, False
        if was_failing:
            log.event("webhook_is_well")

    def _count_loss(self, outcome: str, problem: str) -> None:
        """Count a lost event; log the first after a success."""
        metrics.WEBHOOK_EVENTS.labels(outcome).inc()
        with self._lock:
            was_failing, self._is_failing = self._is_failing, True
        if not was_failing:
            log.event("webhook_fails", problem=problem)


class _Link:
    """A connection to the receiver, kept open between events."""

    def __init__(self, limits: Notifications) -> None:
        parts = urlsplit(limits.webhook)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        assert parts.hostname is not None, "settings have a URL with a host"
        self._connection = kind(parts.hostname, parts.port, timeout=limits.webhook_timeout_s)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._is_used = False

    def post(self, body: bytes) -> int:
        """Send an event; return the status of the response."""
        try:
            return self._post(body)
        except _STALE:
            self.close()
            if not self._is_used:
                raise
            # The receiver closed an idle connection; try once on a new one.
            self._is_used = False
            return self._post(body)

    def close(self) -> None:
        """Use a new connection for the next event."""
        self._connection.close()

    def _post(self, body: bytes) -> int:
        headers = {"content-type": "application/json", "user-agent": f"roost/{__version__}"}
        self._connection.request("POST", self._path, body=body, headers=headers)
        response = self._connection.getresponse()
        response.read(_RESPONSE_MAX_BYTES)
        self._is_used = response.isclosed() and not response.will_close
        if not self._is_used:
            self.close()
        return response.status
