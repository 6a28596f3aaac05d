"""Settings of notifications about decisions."""

from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

# Lower bounds of settings.
_LOWER_BOUNDS = {
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
        bool, Meta(description="Whether to also send scheduler.run_instance.start and .end, the older names.")
    ] = False
    buffer_max_bytes: Annotated[
        int, Meta(description="Bytes of events that one process buffers for slow or reconnecting readers.")
    ] = 4 * 2**20
    subscribers_max: Annotated[
        int, Meta(description="Upper bound of readers of /v1/events in one process, else 503.")
    ] = 100
    subscribers_each_max: Annotated[
        int, Meta(description="Upper bound of readers of /v1/events per identity in one process, else 503.")
    ] = 20
    heartbeat_s: Annotated[float, Meta(description="Seconds without an event until a reader gets an empty line.")] = (
        15.0
    )
    stall_s: Annotated[float, Meta(description="Seconds until a stalled reader is disconnected.")] = 30.0
    webhook: Annotated[str, Meta(description="URL that receives every event, by POST; empty: none.")] = ""
    webhook_queue_max: Annotated[
        int, Meta(description="Upper bound of unsent events in one process; further events are dropped.")
    ] = 1000
    webhook_in_flight: Annotated[int, Meta(description="Concurrent sends of one process.")] = 4
    webhook_attempts: Annotated[int, Meta(description="Attempts to send an event.")] = 5
    webhook_backoff_s: Annotated[
        float, Meta(description="Seconds before the second attempt; doubled before each further attempt.")
    ] = 0.5
    webhook_timeout_s: Annotated[float, Meta(description="Seconds for the receiver to answer.")] = 10.0

    def __post_init__(self) -> None:
        for name, minimum in _LOWER_BOUNDS.items():
            if getattr(self, name) < minimum:
                raise ValueError(f"{name} must be {minimum:g} or more, got {getattr(self, name)}")
        if self.webhook:
            _check_url(self.webhook)


def _check_url(text: str) -> None:
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    else:
        is_valid = is_valid and "@" not in parts.netloc and text.isascii() and text.isprintable() and " " not in text
    if not is_valid:
        raise ValueError("webhook must be http://HOST/PATH or https://HOST/PATH without user and password")
