"""The log: one line of JSON per event on standard error, without secrets."""

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from roost.errors import BuildAborted, BuildFailed, Unavailable

Sink = Callable[[dict[str, object]], None]
# Errors with a self-explanatory message, which need no traceback.
_SELF_EXPLANATORY = (Unavailable, BuildFailed, BuildAborted)
_sinks: list[Sink] = []


@contextmanager
def redirect_events(sink: Sink) -> Iterator[None]:
    """Pass events to a function instead of the log within the block, for all threads of the process."""
    _sinks.append(sink)
    try:
        yield
    finally:
        _sinks.remove(sink)


def request(
    *,
    request_id: str,
    method: str,
    path: str,
    status: int,
    elapsed_s: float,
    user: str | None,
    project: str | None,
    version: str,
    size: int,
) -> None:
    """Log an answered request, without its headers and query string."""
    _write(
        {
            "event": "request",
            "request_id": request_id,
            "method": method,
            "path": path,
            "status": status,
            "ms": round(elapsed_s * 1000, 3),
            "bytes": size,
            "version": version,
            "user": user,
            "project": project,
        }
    )


def fault(request_id: str, error: BaseException) -> None:
    """Log an unexpected error, with its traceback unless its message explains it."""
    fields: dict[str, object] = {"event": "fault", "request_id": request_id, "error": repr(error)}
    if not isinstance(error, _SELF_EXPLANATORY):
        fields["traceback"] = "".join(traceback.format_exception(error))
    _write(fields)


def event(name: str, **fields: str | float | None) -> None:
    """Log any other event."""
    _write({"event": name, **fields})


def _write(fields: dict[str, object]) -> None:
    if _sinks:
        _sinks[-1](fields)
        return
    now_s = time.time()
    line = msgspec.json.encode({"time_s": round(now_s, 3), **fields}) + b"\n"
    # A log without a reader must not stop the process.
    try:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
    except (OSError, ValueError, AttributeError):
        return
