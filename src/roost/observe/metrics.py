"""All metrics, each declared once, with unit and labels.

If several processes serve one database, each process writes its metrics into files of a common folder. Their parent
process combines the files and serves the result.
"""

import functools
import os
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_METHODS = frozenset({"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)

REQUESTS = Counter("roost_requests", "Answered requests.", ["route", "method", "status"])
REQUEST_SECONDS = Histogram(
    "roost_request_seconds", "Seconds from the head of a request to its response.", ["route"], buckets=_SECONDS
)
QUEUE_DEPTH = Gauge("roost_queue_depth", "Requests in the queue of the deciding thread.", multiprocess_mode="livesum")
GROUP_SIZE = Histogram("roost_group_size", "Requests per group commit.", buckets=_SIZES)
COMMIT_SIZE = Histogram("roost_commit_size", "Writes per commit.", buckets=_SIZES)
CONFLICTS = Counter("roost_conflicts_retried", "Retries of writes that lost a race.")
BEHIND = Histogram(
    "roost_changes_read", "Changes by other processes, read before a response.", buckets=(0, *_SIZES, 1024)
)
REVISION = Gauge("roost_revision", "Position of the newest known change.", multiprocess_mode="livemin")
PROVIDERS = Gauge("roost_providers", "Number of providers.", multiprocess_mode="livemax")
CONSUMERS = Gauge("roost_consumers", "Consumers with allocations.", multiprocess_mode="livemax")
QUESTIONS_READ = Counter("roost_questions_read", "Questions to the reader process.")
FAULTS = Counter("roost_faults", "Groups of requests that failed because of the database or an unexpected error.")
DATABASE_FAILURES = Counter("roost_database_failures", "Requests that failed because of the database.")
LISTENERS_FAILED = Counter("roost_listeners_failed", "Failures of functions that run after a commit.")

CONNECTIONS_REFUSED = Counter("roost_connections_refused", "Connections refused because of the limit.")
TIMELINE_CHANGES = Counter("roost_timeline_changes", "Takeovers by another PostgreSQL server.")

AGENTS_WAITING = Gauge("roost_agents_waiting", "Agents waiting for orders.", multiprocess_mode="livesum")
EVENT_READERS = Gauge("roost_event_readers", "Open readers of events.", multiprocess_mode="livesum")
EVENT_READERS_DROPPED = Counter(
    "roost_event_readers_dropped", "Readers of events disconnected because they were too slow."
)
WEBHOOK_EVENTS = Counter("roost_webhook_events", "Events of the webhook by outcome.", ["outcome"])
WEBHOOK_RETRIES = Counter("roost_webhook_retries", "Repeated attempts to send an event.")


def count_response(route: str, method: str, status: int, *, elapsed_s: float) -> None:
    """Count a response.

    Args:
        route: the path with the names of its parameters; empty: unknown path.
        method, status: HTTP method and status.
        elapsed_s: duration of the request.
    """
    counter, histogram = _children(route or "none", method if method in _METHODS else "other", status)
    counter.inc()
    histogram.observe(elapsed_s)


@functools.cache
def _children(route: str, method: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(route, method, str(status)), REQUEST_SECONDS.labels(route)


def forget(process: int) -> None:
    """Drop the gauges of a process; its counters stay."""
    if os.environ.get(FOLDER_VARIABLE):
        mark_process_dead(process)  # type: ignore[no-untyped-call]  # untyped in the library


def text() -> bytes:
    """Return the metrics of this process, or of all processes with a common folder, in the format of Prometheus."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder or not Path(folder).is_dir():
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]  # untyped in the library
    return generate_latest(registry)
