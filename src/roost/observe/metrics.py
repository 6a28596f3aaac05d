"""Metrics of requests, events, the deciding thread and the process, each declared once.

``work_metrics`` has those of decisions, operations, agents and messages; ``fleet_metrics`` those of surveys. If several
processes serve one database, each process writes its metrics into files of a common folder; see ``exposition``.
"""

import functools
import platform
from importlib.metadata import PackageNotFoundError, version

from prometheus_client import Counter, Histogram

from roost.observe.families import Label, declare_counter, declare_gauge, declare_histogram

_METHODS = frozenset({"GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"})
# Few buckets, because each group of routes has its own.
_SECONDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)
_SIZES = (1, 4, 16, 64)

_ROUTE = Label("route", "paths of both APIs with the names of their parameters, about 110; `none`: an unknown path")
_GROUP = Label("group", "first two parts of a route, such as `/v1/instances`, about 30; `none`: an unknown path")
_METHOD = Label("method", "7 methods, and `other`")
_STATUS = Label("status", "HTTP statuses of Roost, about 20")

REQUESTS = declare_counter(
    "roost_requests_total", "Answered requests.", area="requests", labels=(_ROUTE, _METHOD, _STATUS)
)
REQUEST_SECONDS = declare_histogram(
    "roost_request_seconds",
    "Seconds from the head of a request to its response.",
    area="requests",
    labels=(_GROUP,),
    buckets=_SECONDS,
)
QUESTIONS_READ = declare_counter("roost_questions_read_total", "Questions to the reader process.", area="requests")
CONNECTIONS_REFUSED = declare_counter(
    "roost_connections_refused_total",
    "Connections refused because of the limit `placement.connections_max`.",
    area="requests",
)
DATABASE_FAILURES = declare_counter(
    "roost_database_failures_total", "Requests that failed because of the database.", area="requests"
)

QUEUE_DEPTH = declare_gauge(
    "roost_queue_depth", "Requests in the queue of the deciding thread.", area="thread", mode="livesum"
)
QUEUE_LIMIT = declare_gauge(
    "roost_queue_limit", "Upper bound of that queue, `placement.queue_max`.", area="thread", mode="livesum"
)
BUSY_SECONDS = declare_gauge(
    "roost_deciding_thread_busy_seconds",
    "Seconds since the deciding thread began its current group of requests; 0: it waits.",
    area="thread",
    mode="livemax",
)
GROUP_SIZE = declare_histogram("roost_group_size", "Requests per group commit.", area="thread", buckets=_SIZES)
COMMIT_SIZE = declare_histogram("roost_commit_size", "Writes per commit.", area="thread", buckets=_SIZES)
GROUP_LIMIT = declare_gauge(
    "roost_group_limit",
    "Present upper bound of items in one commit; below `store.group_max`: commits wait for rows of other processes.",
    area="thread",
    mode="livemin",
)
CONFLICTS = declare_counter("roost_conflicts_retried_total", "Retries of writes that lost a race.", area="thread")
BEHIND = declare_histogram(
    "roost_changes_read",
    "Changes by other processes, read before a response.",
    area="thread",
    buckets=(0, *_SIZES, 1024),
)
REVISION = declare_gauge("roost_revision", "Position of the newest known change.", area="thread", mode="livemin")
PROVIDERS = declare_gauge("roost_providers", "Number of providers.", area="thread", mode="livemax")
CONSUMERS = declare_gauge("roost_consumers", "Consumers with allocations.", area="thread", mode="livemax")
FAULTS = declare_counter(
    "roost_faults_total",
    "Groups of requests that failed because of the database or an unexpected error.",
    area="thread",
)
LISTENERS_FAILED = declare_counter(
    "roost_listeners_failed_total",
    "Failures of functions that run after a commit, such as notifications; the commit is not affected.",
    area="thread",
)
TIMELINE_CHANGES = declare_counter(
    "roost_timeline_changes_total", "Takeovers by another database server.", area="thread"
)

EVENT_READERS = declare_gauge("roost_event_readers", "Open readers of events.", area="events", mode="livesum")
EVENT_READERS_DROPPED = declare_counter(
    "roost_event_readers_dropped_total",
    "Readers of events disconnected because they were too slow.",
    area="events",
)
WEBHOOK_EVENTS = declare_counter(
    "roost_webhook_events_total",
    "Events of the webhook by outcome.",
    area="events",
    labels=(Label("outcome", "`delivered`, `failed` (given up or refused), `dropped`"),),
)
WEBHOOK_RETRIES = declare_counter("roost_webhook_retries_total", "Repeated attempts to send an event.", area="events")

READY = declare_gauge(
    "roost_ready",
    "1 if a check of `/readyz` passes, otherwise 0.",
    area="process",
    mode="livemin",
    labels=(Label("check", "`database`, `deciding_thread`, `queue`, `conductor`"),),
)
BUILD_INFO = declare_gauge(
    "roost_build_info",
    "Always 1; the labels have the versions.",
    area="process",
    mode="max",
    labels=(Label("version", "one"), Label("python", "one")),
)


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
    return REQUESTS.labels(route, method, str(status)), REQUEST_SECONDS.labels(route_group(route))


def route_group(route: str) -> str:
    """Return the group of a route: its first two parts.

    >>> route_group("/v1/instances/{uuid}/start")
    '/v1/instances'
    """
    return "/".join(route.split("/")[:3])


def set_build_info() -> None:
    """Set the versions of this process."""
    try:
        own = version("roost")
    except PackageNotFoundError:  # It runs from a source tree.
        own = "unknown"
    BUILD_INFO.labels(own, platform.python_version()).set(1)
