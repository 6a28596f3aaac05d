"""Settings of what others are told of decisions."""

from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

# Settings that must be at least this much.
_AT_LEAST = {
    "buffer_max_bytes": 1024,
    "subscribers_max": 0,
    "subscribers_each_max": 1,
    "heartbeat_s": 0.1,
    "stall_s": 0.1,
    "webhook_queue_max": 1,
    "webhook_attempts": 1,
    "webhook_in_flight": 1,
    "webhook_timeout_s": 0.001,
    "webhook_backoff_s": 0.0,
}


class Notifications(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section ``[notifications]``."""

    run_instance: Annotated[
        bool, Meta(description="Whether scheduler.run_instance.start and .end, the older names, are told as well.")
    ] = False
    buffer_max_bytes: Annotated[
        int, Meta(description="Bytes of events that one process keeps for readers that are behind or come back.")
    ] = 4 * 2**20
    subscribers_max: Annotated[int, Meta(description="Readers of /v1/events in one process, else 503.")] = 100
    subscribers_each_max: Annotated[
        int, Meta(description="Readers of /v1/events of one identity in one process, else 503.")
    ] = 20
    heartbeat_s: Annotated[
        float, Meta(description="Seconds without an event after which a reader gets a line that says nothing.")
    ] = 15.0
    stall_s: Annotated[
        float, Meta(description="Seconds after which a reader that takes nothing any more loses its connection.")
    ] = 30.0
    webhook: Annotated[str, Meta(description="URL to which every event is sent by POST; empty: nowhere.")] = ""
    webhook_queue_max: Annotated[
        int, Meta(description="Events that wait to be sent in one process; what comes while so many wait is lost.")
    ] = 1000
    webhook_in_flight: Annotated[int, Meta(description="Events that one process sends at the same time.")] = 4
    webhook_attempts: Annotated[int, Meta(description="How often an event is sent until it is given up.")] = 5
    webhook_backoff_s: Annotated[
        float, Meta(description="Seconds until an event is sent a second time; twice as long before each further time.")
    ] = 0.5
    webhook_timeout_s: Annotated[float, Meta(description="Seconds that the other side has to answer.")] = 10.0

    def __post_init__(self) -> None:
        for name, least in _AT_LEAST.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be {least:g} or more, got {getattr(self, name)}")
        if self.webhook:
            _check_url(self.webhook)


def _check_url(text: str) -> None:
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    else:
        is_good = is_good and "@" not in parts.netloc and text.isascii() and text.isprintable() and " " not in text
    if not is_good:
        raise ValueError("webhook must be http://HOST/PATH or https://HOST/PATH without user and password")
