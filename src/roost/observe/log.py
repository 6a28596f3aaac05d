"""The log: one line per event on standard error, as text or JSON, without secrets.

``log_events`` describes every event. ``log_lines`` formats lines.
"""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from roost.errors import BuildAborted, BuildFailed, Unavailable
from roost.model.settings.log_settings import Level, Log
from roost.observe.log_events import EVENTS
from roost.observe.log_lines import Line, as_json, as_text
from roost.observe.log_writer import LogWriter

Sink = Callable[[dict[str, object]], None]
# Errors with a self-explanatory message, which need no traceback.
_SELF_EXPLANATORY = (Unavailable, BuildFailed, BuildAborted)
_RANKS: Mapping[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}
# Fields that differ between repetitions of one problem.
_VARYING = frozenset({"request_id", "traceback", "requests", "seconds", "count", "process", "method", "path"})
# Events whose callers limit and count repetitions themselves.
_LIMITED_BY_CALLER = frozenset({"database_unusable"})
# Maximum number of problems whose repetitions are counted.
_PROBLEMS_MAX = 1000
_sinks: list[Sink] = []


class _Repetitions:
    """Counts the repetitions of a warning or error for a time after its line."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[object, ...], tuple[float, int, Line]] = {}  # time of the line, repetitions since

    def admit(self, line: Line, *, window_s: float) -> Line | None:
        """Return the line to write, with the number of repetitions since the last one; None: it is only counted."""
        fields = [(name, str(value)) for name, value in line.fields.items() if name not in _VARYING]
        key = (line.event, line.logger, *fields)
        with self._lock:
            written_s, count, _ = self._counts.pop(key, (-window_s, 0, line))
            if 0 <= line.time_s - written_s < window_s:  # Negative: the clock was set back.
                self._counts[key] = (written_s, count + 1, line)
                return None
            while len(self._counts) >= _PROBLEMS_MAX:
                del self._counts[next(iter(self._counts))]
            self._counts[key] = (line.time_s, 0, line)
        return line.with_repetitions(count) if count else line

    def take_due(self, now_s: float, *, window_s: float) -> list[Line]:
        """Return the last line of each problem whose time has ended, if there were repetitions; forget them all."""
        with self._lock:
            ended = [key for key, (written_s, _, _) in self._counts.items() if not 0 <= now_s - written_s < window_s]
            found = [self._counts.pop(key) for key in ended]
        return [line.with_repetitions(count) for _, count, line in found if count]


class _Output:
    """The settings of the log of this process."""

    def __init__(self) -> None:
        self.use(Log(repeat_s=0.0))  # Until ``configure``, write each line: only few are expected.
        self.repetitions = _Repetitions()
        self.writer: LogWriter | None = None  # None: the thread of an event writes its line

    def use(self, settings: Log) -> None:
        self.settings = settings
        self.rank_min = _RANKS[settings.level]
        self.format = settings.format
        self.repeat_s = settings.repeat_s

    @property
    def is_text(self) -> bool:
        if self.format != "auto":
            return self.format == "text"
        try:
            return sys.stderr.isatty()
        except (AttributeError, ValueError):
            return False


class _Forward(logging.Handler):
    """Writes the records of Python's logging as events."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, object] = {"message": record.getMessage()}
        if record.exc_info is not None and record.exc_info[1] is not None:
            fields["traceback"] = _traceback_of(record.exc_info[1])
        write("python_log", fields, level=level_of(record), logger=record.name)


_output = _Output()
_python_logger, _forward = logging.getLogger("roost"), _Forward()


def configure(settings: Log) -> None:
    """Use settings for all further lines of this process, and forward Python's logging of Roost's own modules."""
    _output.use(settings)
    if _forward not in _python_logger.handlers:
        _python_logger.addHandler(_forward)
        _python_logger.propagate = False
    _python_logger.setLevel(_RANKS[settings.level])


def settings_in_use() -> Log:
    """Return the settings of this process."""
    return _output.settings


@contextmanager
def write_in_background() -> Iterator[None]:
    """Write all lines of this process in a thread of its own within the block, so that no other thread waits for it.

    If the reader of the log stops, lines wait up to a limit; further ones are dropped and counted.
    """
    try:
        descriptor = sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):
        yield
        return
    _output.writer = writer = LogWriter(descriptor, report_drops=lambda count: event("lines_dropped", count=count))
    try:
        yield
    finally:
        _output.writer = None
        writer.stop()


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
    fields: dict[str, object] = {
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
    _write("request", fields)


def fault(request_id: str, error: BaseException) -> None:
    """Log an unexpected error, with its traceback unless its message explains it."""
    fields: dict[str, object] = {"request_id": request_id, "error": repr(error)}
    if not isinstance(error, _SELF_EXPLANATORY):
        fields["traceback"] = _traceback_of(error)
    _write("fault", fields)


def _traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def event(name: str, **fields: str | float | None) -> None:
    """Log an event at the level in ``log_events``."""
    _write(name, dict(fields))


def write(name: str, fields: Mapping[str, object], *, level: Level | None = None, logger: str | None = None) -> None:
    """Log an event with any level and logger.

    Args:
        fields: values by name; None is left out of texts.
        level: None: the level in ``log_events``.
        logger: None: the calling module.
    """
    _write(name, dict(fields), level=level, logger=logger)


def level_of(record: logging.LogRecord) -> Level:
    """Return the level of a record of Python's logging."""
    if record.levelno >= logging.WARNING:
        return "error" if record.levelno >= logging.ERROR else "warning"
    return "info" if record.levelno >= logging.INFO else "debug"


def write_repetitions() -> None:
    """Write one line for each repeated problem whose time to count has ended; call this regularly."""
    for line in _output.repetitions.take_due(time.time(), window_s=_output.repeat_s):
        _print(line)


def _write(name: str, fields: dict[str, object], *, level: str | None = None, logger: str | None = None) -> None:
    if _sinks:
        _sinks[-1]({"event": name, **fields})
        return
    if level is None:
        level = EVENTS[name].level if name in EVENTS else "info"
    rank = _RANKS[level]
    if rank < _output.rank_min:
        return
    if logger is None:
        # The function that called a function of this module.
        logger = sys._getframe(2).f_globals.get("__name__", "")  # noqa: SLF001  # faster than ``inspect``
    line = Line(time_s=time.time(), level=level, logger=logger, event=name, fields=fields)
    if rank >= _RANKS["warning"] and _output.repeat_s and name not in _LIMITED_BY_CALLER:
        admitted = _output.repetitions.admit(line, window_s=_output.repeat_s)
        if admitted is None:
            return
        line = admitted
    _print(line)


def _print(line: Line) -> None:
    encoded = as_text(line) if _output.is_text else as_json(line)
    if (writer := _output.writer) is not None:
        writer.put(encoded)
        return
    # A log without a reader must not stop the process.
    try:
        sys.stderr.buffer.write(encoded)
        sys.stderr.buffer.flush()
    except (OSError, ValueError, AttributeError):
        return
