"""Settings of the Placement API: addresses, authentication and limits."""

from typing import Annotated

import msgspec
from msgspec import Meta

# Owner of allocations that were written before allocations had owners.
NOBODY = "00000000-0000-0000-0000-000000000000"
AUTH_STRATEGIES = ("noauth2", "tokens", "keystone")
GENERATION_STRATEGIES = ("depth-first", "breadth-first")
# Browsers keep a cookie for 400 days at most.
_SESSION_HOURS_MIN, _SESSION_HOURS_MAX = 0.001, 8_760.0
# Lower bounds of settings.
_LOWER_BOUNDS = {
    "workers": 1,
    "allocation_conflict_retry_count": 0,
    "max_allocation_candidates": -1,
    "cors_max_age": 0,
    "body_max_bytes": 1,
    "bodies_max_bytes": 1,
    "body_values_max": 1,
    "head_max_bytes": 1024,
    "header_count_max": 8,
    "uri_max_bytes": 64,
    "groups_max": 1,
    "candidates_max_bytes": 1024,
    "agent_names_max": 0,
    "tree_depth_max": 1,
    "tree_providers_max": 1,
    "connections_max": 1,
    "requests_max": 1,
    "agents_max": 1,
    "queue_max": 1,
    "remote_timeout_s": 0.001,
    "remote_sync_s": 0.001,
    "request_timeout_s": 0.001,
    "question_budget_s": 0.001,
    "question_memory_mib": 16,
    "header_timeout_s": 0.001,
    "body_timeout_s": 0.001,
    "keep_alive_s": 0.001,
    "stop_timeout_s": 0.0,
}


class Placement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[placement]``."""

    listen: Annotated[str, Meta(description="Address and port of the API; port 0: any free one.")] = "127.0.0.1:8778"
    metrics_listen: Annotated[
        str,
        Meta(description="Address and port of /healthz, /readyz and /metrics, without authentication; empty: none."),
    ] = ""
    prefix: Annotated[str, Meta(description="Path prefix of the API, such as /placement; empty: /.")] = ""
    remote_url: Annotated[
        str,
        Meta(
            description="Address of a remote Placement API for claims; catalog: from Keystone's catalog; empty: "
            "Roost's own Placement."
        ),
    ] = ""
    remote_timeout_s: Annotated[float, Meta(description="Seconds for the remote Placement to answer.")] = 10.0
    remote_sync_s: Annotated[
        float, Meta(description="Seconds between reads of the hosts from the remote Placement.")
    ] = 60.0
    workers: Annotated[int, Meta(description="Server processes; more than one needs a database server.")] = 1
    sync_on_startup: Annotated[bool, Meta(description="Whether to upgrade an older database schema at the start.")] = (
        False
    )
    auth_strategy: Annotated[
        str, Meta(description="Authentication: noauth2 (none), tokens (from a file) or keystone.")
    ] = "noauth2"
    allow_insecure_listen: Annotated[
        bool, Meta(description="Whether noauth2 may listen on addresses that other machines can reach.")
    ] = False
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Host names to accept with noauth2, besides IP addresses, localhost and listen's host; *: any."
        ),
    ] = ()
    allow_plain_http: Annotated[
        bool, Meta(description="Whether to accept tokens over plain HTTP on addresses that other machines can reach.")
    ] = False
    tls_cert: Annotated[str, Meta(description="PEM file of the certificate and its chain; empty: plain HTTP.")] = ""
    tls_key: Annotated[
        str, Meta(description="PEM file of the certificate's private key; empty: the file of tls_cert.")
    ] = ""
    tls_ca: Annotated[
        str, Meta(description="PEM file of CAs for client certificates; empty: clients need no certificate.")
    ] = ""
    tokens_file: Annotated[str, Meta(description="File of tokens for auth_strategy tokens.")] = ""
    keystone_file: Annotated[
        str, Meta(description="INI file with a section keystone_authtoken, for auth_strategy keystone.")
    ] = ""
    policy_file: Annotated[str, Meta(description="YAML or JSON file of policies that override the defaults.")] = ""
    session_hours: Annotated[float, Meta(description="Hours until a browser session ends, 0.001 to 8,760.")] = 12.0
    enforce_new_defaults: Annotated[
        bool, Meta(description="Whether only the role service may reshape; otherwise admin may, too.")
    ] = True
    randomize_allocation_candidates: Annotated[
        bool, Meta(description="Whether to return candidates in random order; with a limit, a random selection.")
    ] = False
    max_allocation_candidates: Annotated[
        int, Meta(description="Upper bound of generated candidates for one request; -1: none.")
    ] = -1
    allocation_candidates_generation_strategy: Annotated[
        str, Meta(description="depth-first: tree by tree; breadth-first: all trees in turn.")
    ] = "depth-first"
    allocation_conflict_retry_count: Annotated[int, Meta(description="Retries of a write after lost races.")] = 10
    incomplete_consumer_project_id: Annotated[
        str, Meta(description="Project of consumers that requests before version 1.8 create without one.")
    ] = NOBODY
    incomplete_consumer_user_id: Annotated[
        str, Meta(description="User of consumers that requests before version 1.8 create without one.")
    ] = NOBODY
    cors_allowed_origin: Annotated[
        tuple[str, ...], Meta(description="Allowed origins of web pages, or *; empty: no CORS headers.")
    ] = ()
    cors_allow_credentials: Annotated[
        bool, Meta(description="Whether web pages of the allowed origins may send credentials.")
    ] = True
    cors_expose_headers: Annotated[
        tuple[str, ...], Meta(description="Response headers that web pages of the allowed origins may read.")
    ] = (
        "x-openstack-request-id",
        "openstack-api-version",
    )
    cors_max_age: Annotated[int, Meta(description="Seconds for browsers to cache the CORS permissions.")] = 3600
    cors_allow_methods: Annotated[
        tuple[str, ...], Meta(description="Methods that web pages of the allowed origins may use.")
    ] = (
        "GET",
        "PUT",
        "POST",
        "DELETE",
        "PATCH",
    )
    cors_allow_headers: Annotated[
        tuple[str, ...], Meta(description="Request headers that web pages of the allowed origins may send.")
    ] = (
        "x-auth-token",
        "openstack-api-version",
        "content-type",
        "accept",
    )
    log_requests: Annotated[bool, Meta(description="Whether to log every request as a line on standard error.")] = False
    body_max_bytes: Annotated[int, Meta(description="Upper bound of the body of a request in bytes, else 413.")] = (
        16 * 2**20
    )
    bodies_max_bytes: Annotated[
        int, Meta(description="Upper bound of all current request bodies of one process in bytes, else 503.")
    ] = 256 * 2**20
    body_values_max: Annotated[
        int, Meta(description="Upper bound of values, lists and objects in the JSON of a body, else 413.")
    ] = 100_000
    head_max_bytes: Annotated[
        int, Meta(description="Upper bound of a request's first line and headers in bytes, else 431.")
    ] = 64 * 2**10
    header_count_max: Annotated[int, Meta(description="Upper bound of headers in a request, else 431.")] = 100
    uri_max_bytes: Annotated[int, Meta(description="Upper bound of path and query string in bytes, else 414.")] = (
        32 * 2**10
    )
    groups_max: Annotated[
        int,
        Meta(description="Upper bound of groups, including the unsuffixed one, in a request for candidates, else 400."),
    ] = 100
    candidates_max_bytes: Annotated[
        int, Meta(description="Upper bound of the candidates in one response in bytes, else 400.")
    ] = 256 * 2**20
    agent_names_max: Annotated[
        int,
        Meta(
            description="Upper bound of custom resource classes, and of custom traits, that the token of an agent may "
            "create per host, else 403.",
        ),
    ] = 256
    tree_depth_max: Annotated[
        int, Meta(description="Upper bound of providers from a root to a leaf, both included, else 400.")
    ] = 32
    tree_providers_max: Annotated[int, Meta(description="Upper bound of providers in one tree, else 400.")] = 10_000
    connections_max: Annotated[
        int, Meta(description="Upper bound of open connections of one process; further ones get 503 and are closed.")
    ] = 4096
    requests_max: Annotated[int, Meta(description="Upper bound of unanswered requests of one process, else 503.")] = (
        2048
    )
    agents_max: Annotated[
        int, Meta(description="Upper bound of agents that poll one process for orders, else 503.")
    ] = 10_000
    queue_max: Annotated[int, Meta(description="Upper bound of queued requests in one process, else 503.")] = 1024
    request_timeout_s: Annotated[
        float, Meta(description="Seconds from the last byte of a request to its response, else 503.")
    ] = 60.0
    question_budget_s: Annotated[
        float, Meta(description="Seconds of work for one read, such as a search for candidates, else 503.")
    ] = 5.0
    question_memory_mib: Annotated[int, Meta(description="Memory for one read in MiB, else 503.")] = 256
    has_reader: Annotated[bool, Meta(description="Whether a separate process answers slow reads.")] = True
    header_timeout_s: Annotated[
        float,
        Meta(
            description="Seconds from the first byte of a request to the end of its head, else 408. A new connection "
            "without a first byte closes after the same time."
        ),
    ] = 10.0
    body_timeout_s: Annotated[
        float, Meta(description="Seconds from the head of a request to the end of its body, else 408.")
    ] = 60.0
    keep_alive_s: Annotated[float, Meta(description="Seconds until an idle connection is closed.")] = 75.0
    stop_timeout_s: Annotated[float, Meta(description="Seconds for requests to finish after a stop signal.")] = 30.0

    def __post_init__(self) -> None:
        for name, minimum in _LOWER_BOUNDS.items():
            if getattr(self, name) < minimum:
                raise ValueError(f"{name} must be {minimum} or more, got {getattr(self, name)}")
        if self.max_allocation_candidates == 0:
            raise ValueError("max_allocation_candidates must be -1, or 1 or more, got 0")
        if not _SESSION_HOURS_MIN <= self.session_hours <= _SESSION_HOURS_MAX:
            raise ValueError(f"session_hours must be 0.001 to 8,760, got {self.session_hours}")
        for name, choices in (
            ("auth_strategy", AUTH_STRATEGIES),
            ("allocation_candidates_generation_strategy", GENERATION_STRATEGIES),
        ):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be {' or '.join(choices)}, got {getattr(self, name)!r}")
        if self.prefix and (not self.prefix.startswith("/") or self.prefix.endswith("/")):
            raise ValueError(f"prefix must begin with / and not end with it, got {self.prefix!r}")
        for name in ("tls_key", "tls_ca"):
            if getattr(self, name) and not self.tls_cert:
                raise ValueError(f"{name} is of no use without tls_cert")
        for name in ("incomplete_consumer_project_id", "incomplete_consumer_user_id"):
            if not 1 <= len(getattr(self, name)) <= 255:
                raise ValueError(f"{name} must have 1..255 characters, got {len(getattr(self, name))}")
