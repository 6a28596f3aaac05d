"""A client of server-sent events, and a receiver of webhooks."""

import http.client
import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ADMIN = {"x-auth-token": "admin"}


class EventStream:
    """An open stream of events."""

    def __init__(self, answer):
        self.status, self.headers, self._answer = answer.status, answer.headers, answer

    def lines(self):
        """Return the lines of the next block; an empty list at the end of the stream."""
        found = []
        while line := self._answer.readline():
            if line == b"\n":
                return found
            found.append(line.decode().rstrip("\n"))
        return found

    def events(self, count, *, patience_s=60.0):
        """Return the next ``count`` events, each with its id, name and data."""
        found, until_s = [], time.monotonic() + patience_s
        while len(found) < count:
            lines = self.lines()
            assert lines, "the stream has ended"
            assert time.monotonic() < until_s, f"{len(found)} of {count} events came within {patience_s:g} s"
            fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
            if "event" in fields:
                found.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
        return found


@contextmanager
def follow_events(server, *, last_id=None, headers=ADMIN, query=""):
    """Yield a stream of the events of a server, after its first block."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        more = {} if last_id is None else {"last-event-id": last_id}
        connection.request("GET", f"/v1/events{query}", headers={**headers, **more})
        follower = EventStream(connection.getresponse())
        if follower.status == 200:
            assert follower.lines() == ["retry: 1000"]
        yield follower
    finally:
        connection.close()


class WebhookReceiver(ThreadingHTTPServer):
    """A webhook receiver that records requests; it replies with the given statuses, then with 204."""

    daemon_threads = True

    def __init__(self, statuses=()):
        super().__init__(("127.0.0.1", 0), _HookHandler)
        self.statuses = list(statuses)
        self.taken = []
        self.kept = threading.Event()  # while it is not set, requests get no reply
        self.kept.set()
        self.changed = threading.Condition()

    @property
    def url(self):
        """The URL of the webhook."""
        return f"http://127.0.0.1:{self.server_port}/hook?of=roost"

    def wait(self, count):
        """Wait until ``count`` requests have arrived; return all requests."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.taken) >= count, timeout=60), self.taken
            return list(self.taken)


class _HookHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        """Record one event."""
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.server.changed:
            status = self.server.statuses.pop(0) if self.server.statuses else 204
            self.server.taken.append((self.path, status, json.loads(body)))
            self.server.changed.notify_all()
        self.server.kept.wait()
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_words):
        """Log nothing."""


@contextmanager
def webhook_receiver(statuses=()):
    """Run a webhook receiver during the block."""
    hook = WebhookReceiver(statuses)
    thread = threading.Thread(target=hook.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        hook.kept.set()
        hook.shutdown()
        thread.join()
        hook.server_close()
