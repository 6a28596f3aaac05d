"""Every error raised on purpose, as one tree, grouped by what the caller can do.

.. code-block:: text

    RoostError
    ├── BadRequest        fix the request and send it again
    │   └── BadFile       the same, of a file: names file, line and column
    ├── BadSettings       fix the settings
    ├── NotFound          name something that exists
    │   ├── StateLost     what a decision saw is no longer kept, or was never kept whole
    │   └── ComputeHostMetricNotFound   let the host report the metric, or do not require it
    ├── Conflict          read again and retry
    ├── InUse             release what is held of it, then do it again
    ├── NoValidHost       nothing fits now
    │   └── MaxRetriesExceeded   every attempt to build that was allowed has failed
    ├── BuildFailed       build the instance on another host
    ├── BuildAborted      do not build the instance: it would fail on any host
    ├── Unavailable       retry later, or mend what the message names
    │   ├── StoreBusy     another process serves this database
    │   ├── StoreGone     the database server does not answer
    │   ├── StoreReplaced retry: the database is another one by now, and nothing was written
    │   ├── StoreOutdated run the command that the message names
    │   ├── StoreBroken   the database is corrupt, read-only, full or gone
    │   ├── OverBudget    ask for less at once, or raise the limit that the message names
    │   ├── PlacementGone the remote Placement does not answer, or not as one does
    │   ├── SyncFailed    Placement has only a part of what a host offers: the next update goes on
    │   ├── JournalLost   an agent cannot remember what it does: mend its disk, then start it again
    │   └── DriverNotReady   ask the driver again in a while
    ├── AuditFailed       do not trust the database until it is known why
    ├── ReshapeNeeded     start the agent again: providers of its host change their shape when it starts only
    └── ReshapeFailed     mend what the message names, then start the agent again
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

_QUOTED_MAX = 200  # characters of a value


def first_line(error: BaseException) -> str:
    """Return the first line of what another program said."""
    return (str(error).splitlines() or ["no answer"])[0]


def error_text(error: BaseException) -> str:
    """Return what an error says in one line: ours its sentence, any other its name, too."""
    return str(error) if isinstance(error, RoostError) else f"{type(error).__name__}: {first_line(error)}"


def quote_value(value: object) -> str:
    """Return a value as a sentence quotes it, the beginning of a long one.

    >>> quoted("many"), quoted(True), quoted(1.5)
    ("'many'", 'true', '1.5')
    """
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}…"


class RoostError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is what the command ends with."""

    exit_code = 1
    code = ""  # of the Placement API, where the field has one for it

    def __reduce__(self) -> tuple[Callable[..., "RoostError"], tuple[object, ...]]:
        # Between processes the fields travel; what ``__init__`` made of them is not made again.
        return _restore, (type(self), self.args, self.__dict__)


class BadRequest(RoostError):
    """The request cannot be meant: fix it and send it again."""

    exit_code = 2

    def __init__(self, message: str, *, code: str = "") -> None:
        self.code = code
        super().__init__(message)


class BadFile(BadRequest):
    """A file holds something that cannot be meant."""

    def __init__(self, path: str, problem: str, *, line: int | None = None, column: str | None = None) -> None:
        self.path, self.problem, self.line, self.column = path, problem, line, column
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {problem}" if column is None else f"{place}: column {column}: {problem}")


class BadSettings(RoostError):
    """A setting is unknown or wrong."""

    exit_code = 3

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"{path}: {problem}")


class NotFound(RoostError):
    """What the request names does not exist."""

    exit_code = 4

    def __init__(self, kind: str, name: str, *, message: str | None = None) -> None:
        self.kind, self.name = kind, name
        super().__init__(message or f"no such {kind}: {name}")


class StateLost(NotFound):
    """What a decision saw cannot be rebuilt, so the decision cannot be replayed."""

    def __init__(self, decision: str, problem: str) -> None:
        super().__init__("state of decision", decision)
        self.problem = problem
        self.args = (f"decision {decision} cannot be replayed: {problem}",)


class ComputeHostMetricNotFound(NotFound):
    """A host does not report a metric that the settings require."""

    def __init__(self, *, host: str, node: str, name: str) -> None:
        self.host, self.node = host, node
        super().__init__(
            "metric", name, message=f"Metric {name} could not be found on the compute host node {host}.{node}."
        )


class Conflict(RoostError):
    """Somebody else was faster: read again and retry."""

    exit_code = 5

    def __init__(self, message: str, *, code: str = "") -> None:
        self.code = code
        super().__init__(message)


class InUse(RoostError):
    """Something is still held of what should go, or something is still below it."""

    exit_code = 5


class NoValidHost(RoostError):
    """Nothing fits now."""

    exit_code = 6

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"No valid host was found. {reason}".rstrip())


class MaxRetriesExceeded(NoValidHost):
    """Every attempt to build an instance that was allowed has failed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.args = (f"Exceeded maximum number of retries. {reason}",)


class BuildFailed(RoostError):
    """An instance could not be built on a host, and may be on another; nothing of it is left there."""


class BuildAborted(RoostError):
    """An instance could not be built on a host, and would not be on any other; nothing of it is left there."""


class Unavailable(RoostError):
    """It cannot be answered now: retry later, or mend what the message names."""

    exit_code = 7


class OverBudget(Unavailable):
    """The work on a question reached its budget. Nothing was changed."""

    def __init__(self, subject: str, *, seconds: float, limit: str) -> None:
        self.subject, self.seconds, self.limit = subject, seconds, limit
        super().__init__(f"{subject} took longer than {seconds:g} s (limit {limit}); ask for less at once")


class StoreBusy(Unavailable):
    """Another process serves this database."""


class StoreGone(Unavailable):
    """The database server does not answer."""


class StoreReplaced(Unavailable):
    """The database was restored, or another server took over, since this process read it; nothing was written."""


class StoreOutdated(Unavailable):
    """The database has an older or newer schema than this program."""


class StoreBroken(Unavailable):
    """The database is corrupt, read-only, full or gone."""


class PlacementGone(Unavailable):
    """The remote Placement does not answer, or not as one does."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"the remote Placement cannot be used: {problem}")


class SyncFailed(Unavailable):
    """Placement could not be brought to all that a host offers; what was written stays."""


class JournalLost(Unavailable):
    """The journal of an agent cannot be read or written, or another agent uses it."""


class DriverNotReady(Unavailable):
    """What a driver speaks to does not answer yet."""


class AuditFailed(RoostError):
    """The database breaks a rule that it must keep, or does not answer as it did."""

    exit_code = 8


class ReshapeNeeded(RoostError):
    """Inventories of a node must move to other providers or classes, with all that is held of them."""

    exit_code = 9

    def __init__(self, node: str, moved: str) -> None:
        self.node, self.moved = node, moved
        super().__init__(f"{moved} of node {node} must move to other providers or classes, with what instances hold")


class ReshapeFailed(RoostError):
    """Inventories of a node could not move, with all that is held of them; the message says if any of it did."""

    exit_code = 9

    def __init__(self, node: str, problem: str) -> None:
        self.node, self.problem = node, problem
        super().__init__(f"the providers of node {node} cannot be reshaped: {problem}")


@contextmanager
def report_corruption(subject: str) -> Iterator[None]:
    """Say that the database is corrupt where what it holds of a subject makes no sense.

    Raises:
        StoreBroken: it cannot be decoded, or its parts do not fit together.
    """
    try:
        yield
    except (msgspec.MsgspecError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StoreBroken(f"the database is corrupt: {subject} cannot be understood: {first_line(error)}") from error


def _restore(kind: type[RoostError], args: tuple[object, ...], fields: dict[str, object]) -> RoostError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error
