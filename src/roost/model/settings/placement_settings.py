"""Settings of the Placement API: where it is served, to whom, and within which limits."""

from typing import Annotated

import msgspec
from msgspec import Meta

# What an allocation names as owner that was made before allocations named one.
NOBODY = "00000000-0000-0000-0000-000000000000"
AUTH_STRATEGIES = ("noauth2", "tokens", "keystone")
GENERATION_STRATEGIES = ("depth-first", "breadth-first")
# Settings that must be at least this much.
_AT_LEAST = {
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

    listen: Annotated[str, Meta(description="Address and port of the API; port 0 takes a free one.")] = "127.0.0.1:8778"
    metrics_listen: Annotated[
        str, Meta(description="Address and port of /healthz and /metrics, which anybody may read; empty: nowhere.")
    ] = ""
    prefix: Annotated[str, Meta(description="Path below which the API is found, such as /placement; empty: /.")] = ""
    remote_url: Annotated[
        str,
        Meta(description="Address of the Placement API that `roost up` claims at in place of its own; empty: its own."),
    ] = ""
    remote_timeout_s: Annotated[float, Meta(description="Seconds for which one answer of that is waited for.")] = 10.0
    remote_sync_s: Annotated[float, Meta(description="Seconds from one look at the hosts it has to the next.")] = 60.0
    workers: Annotated[int, Meta(description="Processes that answer; more than one only on PostgreSQL.")] = 1
    sync_on_startup: Annotated[
        bool, Meta(description="Whether a database with an older schema is brought to that of this program at start.")
    ] = False
    auth_strategy: Annotated[
        str, Meta(description="Who is believed: noauth2 (everybody), tokens (of a file) or keystone.")
    ] = "noauth2"
    allow_insecure_listen: Annotated[
        bool, Meta(description="Whether everybody may be believed on addresses that other machines reach.")
    ] = False
    allowed_hosts: Annotated[
        tuple[str, ...],
        Meta(description="Names under which noauth2 answers beside addresses, localhost and that of listen; *: any."),
    ] = ()
    allow_plain_http: Annotated[
        bool, Meta(description="Whether tokens may come over plain HTTP to addresses that other machines reach.")
    ] = False
    tls_cert: Annotated[
        str, Meta(description="PEM file of the certificate, and those that lead to its CA; empty: plain HTTP.")
    ] = ""
    tls_key: Annotated[
        str, Meta(description="PEM file of the certificate's private key; empty: it is in the file of tls_cert.")
    ] = ""
    tls_ca: Annotated[
        str, Meta(description="PEM file of the CAs one of which must vouch for every client; empty: none has to.")
    ] = ""
    tokens_file: Annotated[str, Meta(description="File of the tokens that auth_strategy tokens accepts.")] = ""
    keystone_file: Annotated[
        str, Meta(description="INI file whose section keystone_authtoken auth_strategy keystone reads.")
    ] = ""
    policy_file: Annotated[str, Meta(description="YAML or JSON file of policies that differ from the defaults.")] = ""
    enforce_new_defaults: Annotated[
        bool, Meta(description="Whether reshape is for the role service alone; else admin may do all that service may.")
    ] = True
    randomize_allocation_candidates: Annotated[
        bool, Meta(description="Whether candidates come in random order, and a limit takes a random part.")
    ] = False
    max_allocation_candidates: Annotated[
        int, Meta(description="Candidates that are generated for one request at most; -1: no bound.")
    ] = -1
    allocation_candidates_generation_strategy: Annotated[
        str, Meta(description="depth-first: one tree after the other; breadth-first: all trees in turn.")
    ] = "depth-first"
    allocation_conflict_retry_count: Annotated[
        int, Meta(description="How often a write that lost a race is made anew before its client is told.")
    ] = 10
    incomplete_consumer_project_id: Annotated[
        str, Meta(description="Project of consumers of which none was told, as before version 1.8.")
    ] = NOBODY
    incomplete_consumer_user_id: Annotated[
        str, Meta(description="User of consumers of which none was told, as before version 1.8.")
    ] = NOBODY
    cors_allowed_origin: Annotated[
        tuple[str, ...], Meta(description="Origins whose pages may ask, or *; empty: no browser is told of any.")
    ] = ()
    cors_allow_credentials: Annotated[bool, Meta(description="Whether such pages may send credentials.")] = True
    cors_expose_headers: Annotated[tuple[str, ...], Meta(description="Headers that such pages may read.")] = (
        "x-openstack-request-id",
        "openstack-api-version",
    )
    cors_max_age: Annotated[int, Meta(description="Seconds for which a browser remembers what is allowed.")] = 3600
    cors_allow_methods: Annotated[tuple[str, ...], Meta(description="Methods that such pages may use.")] = (
        "GET",
        "PUT",
        "POST",
        "DELETE",
        "PATCH",
    )
    cors_allow_headers: Annotated[tuple[str, ...], Meta(description="Headers that such pages may send.")] = (
        "x-auth-token",
        "openstack-api-version",
        "content-type",
        "accept",
    )
    log_requests: Annotated[bool, Meta(description="Whether every request is a line of JSON on standard error.")] = (
        False
    )
    body_max_bytes: Annotated[int, Meta(description="Bytes that the body of a request may have, else 413.")] = (
        16 * 2**20
    )
    bodies_max_bytes: Annotated[
        int, Meta(description="Bytes that the bodies of all requests under way in one process may have, else 503.")
    ] = 256 * 2**20
    body_values_max: Annotated[
        int, Meta(description="Values, lists and objects that the JSON of a body may have, else 413.")
    ] = 100_000
    head_max_bytes: Annotated[
        int, Meta(description="Bytes that the head of a request (its first line and headers) may have, else 431.")
    ] = 64 * 2**10
    header_count_max: Annotated[int, Meta(description="Headers that a request may have, else 431.")] = 100
    uri_max_bytes: Annotated[int, Meta(description="Bytes that path and query string may have, else 414.")] = 32 * 2**10
    groups_max: Annotated[
        int, Meta(description="Groups that one request for candidates may have, the unsuffixed one included, else 400.")
    ] = 100
    candidates_max_bytes: Annotated[
        int, Meta(description="Bytes that the candidates in one answer may fill, else 400.")
    ] = 256 * 2**20
    agent_names_max: Annotated[
        int,
        Meta(
            description="Custom resource classes, and as many custom traits, that the token of an agent may create for "
            "each of its hosts, else 403.",
        ),
    ] = 256
    tree_depth_max: Annotated[
        int, Meta(description="Providers on the way from a root to a leaf, both included, else 400.")
    ] = 32
    tree_providers_max: Annotated[int, Meta(description="Providers that one tree may have, else 400.")] = 10_000
    connections_max: Annotated[
        int, Meta(description="Connections that one process holds open; further ones are told 503 and closed.")
    ] = 4096
    requests_max: Annotated[
        int, Meta(description="Requests that one process has begun and not answered, else 503.")
    ] = 2048
    agents_max: Annotated[int, Meta(description="Agents that wait for orders at one process, else 503.")] = 10_000
    queue_max: Annotated[
        int, Meta(description="Requests that wait for the thread that answers them, in one process, else 503.")
    ] = 1024
    request_timeout_s: Annotated[
        float, Meta(description="Seconds from the last byte of a request until its client is told 503.")
    ] = 60.0
    question_budget_s: Annotated[
        float, Meta(description="Seconds of work on one question, such as a search for candidates, else 503.")
    ] = 5.0
    question_memory_mib: Annotated[int, Meta(description="MiB that the work on one question may take, else 503.")] = 256
    has_reader: Annotated[
        bool, Meta(description="Whether questions that take long are answered by a process of their own.")
    ] = True
    header_timeout_s: Annotated[
        float,
        Meta(
            description="Seconds to the first byte of a connection, and from the first byte of a request to the end of "
            "its head, else 408."
        ),
    ] = 10.0
    body_timeout_s: Annotated[
        float, Meta(description="Seconds from the head of a request to the end of its body, else 408.")
    ] = 60.0
    keep_alive_s: Annotated[
        float, Meta(description="Seconds for which a connection stays open without a request on it.")
    ] = 75.0
    stop_timeout_s: Annotated[
        float, Meta(description="Seconds that requests have to finish once the server is told to stop.")
    ] = 30.0

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be {least} or more, got {getattr(self, name)}")
        if self.max_allocation_candidates == 0:
            raise ValueError("max_allocation_candidates must be -1, or 1 or more, got 0")
        for name, known in (
            ("auth_strategy", AUTH_STRATEGIES),
            ("allocation_candidates_generation_strategy", GENERATION_STRATEGIES),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be {' or '.join(known)}, got {getattr(self, name)!r}")
        if self.prefix and (not self.prefix.startswith("/") or self.prefix.endswith("/")):
            raise ValueError(f"prefix must begin with / and not end with it, got {self.prefix!r}")
        for name in ("tls_key", "tls_ca"):
            if getattr(self, name) and not self.tls_cert:
                raise ValueError(f"{name} is of no use without tls_cert")
        for name in ("incomplete_consumer_project_id", "incomplete_consumer_user_id"):
            if not 1 <= len(getattr(self, name)) <= 255:
                raise ValueError(f"{name} must have 1..255 characters, got {len(getattr(self, name))}")
