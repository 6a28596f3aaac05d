"""All expected errors, as one tree, grouped by the reaction of the caller.

.. code-block:: text

    RoostError
    ├── BadRequest        fix the request and send it again
    │   └── BadFile       fix the file: names file, line and column
    │       └── FileMissing   correct the path of the file, or its permissions
    ├── AccessDenied      use another token
    ├── BadSettings       fix the settings
    │   └── SettingsMissing   correct the path of the file, or its permissions
    ├── NotFound          use the name of an existing object
    │   ├── StateLost     the state of a decision was deleted, or never stored completely
    │   └── ComputeHostMetricNotFound   report the metric on the host, or do not require it
    ├── Conflict          read again and retry
    ├── InUse             release the allocations or children first, then retry
    ├── NoValidHost       no host fits now
    │   └── MaxRetriesExceeded   all permitted build attempts failed
    ├── BuildFailed       build the instance on another host
    ├── BuildAborted      do not build the instance: it would fail on any host
    ├── Unavailable       retry later, or repair the subject of the message
    │   ├── StoreBusy     another process serves this database
    │   ├── StoreGone     the database server does not answer
    │   ├── StoreReplaced retry: the database was replaced, and nothing was written
    │   ├── StoreOutdated run the command in the message
    │   ├── StoreBroken   the database is read-only, full, not one of Roost, or has a corrupt row
    │   │   ├── StoreMissing   correct the path of the database, or create it
    │   │   └── StoreCorrupt   restore a backup
    │   ├── OverBudget    request less at once, or raise the limit in the message
    │   ├── PlacementGone the remote Placement does not answer, or its answer is invalid
    │   ├── SyncFailed    Placement accepted only a part of a host's inventory: the next update continues
    │   ├── JournalLost   an agent cannot use its journal: repair its disk, then restart it
    │   └── DriverNotReady   retry the driver later
    ├── AuditFailed       do not trust the database until the cause is clear
    ├── ReshapeNeeded     restart the agent: it reshapes the providers of its host only at its start
    └── ReshapeFailed     repair the subject of the message, then restart the agent
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

_QUOTED_MAX = 200  # characters of a value


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or "no answer" if the message is empty."""
    return (str(error).splitlines() or ["no answer"])[0]


def error_text(error: BaseException) -> str:
    """Describe an error in one line, with the name of its class unless it is a ``RoostError``."""
    return str(error) if isinstance(error, RoostError) else f"{type(error).__name__}: {first_line(error)}"


def quote_value(value: object) -> str:
    """Quote a value for a message; shorten a long one.

    >>> quote_value("many"), quote_value(True), quote_value(1.5)
    ("'many'", 'true', '1.5')
    """
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]}…"


def missing_store(name: str) -> "StoreMissing":
    """Return the error about a missing database."""
    return StoreMissing(f"{name} does not exist; correct the path, or create the database with `roost db sync`")


def empty_store(name: str) -> "StoreBroken":
    """Return an error about a database without tables, for a command that creates none."""
    return StoreBroken(f"{name} is empty: create its tables with `roost db sync`")


def extra_hint(extra: str) -> str:
    """Describe how to install an extra; the name without a file could be another package of an index.

    >>> extra_hint("plot")
    "install Roost with its extra plot, as in pip install 'roost[plot] @ file:///PATH/OF/WHEEL'"
    """
    return f"install Roost with its extra {extra}, as in pip install 'roost[{extra}] @ file:///PATH/OF/WHEEL'"


def read_problem(error: OSError) -> str:
    """Describe why a file cannot be read, and the remedy.

    >>> read_problem(FileNotFoundError(2, "No such file or directory"))
    'cannot be read: No such file or directory; correct the path'
    """
    remedy = "check the path and the disk"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        remedy = "correct the path"
    elif isinstance(error, IsADirectoryError):
        remedy = "name a file"
    elif isinstance(error, PermissionError):
        remedy = "permit this user to read it"
    return f"cannot be read: {error.strerror or error}; {remedy}"


def unreadable_file(path: str, error: OSError) -> "FileMissing":
    """Return the error about a file that cannot be read."""
    return FileMissing(path, read_problem(error))


def unreadable_settings(path: str, error: OSError) -> "SettingsMissing":
    """Return the error about an unreadable file of settings, rules, tokens or certificates."""
    return SettingsMissing(path, read_problem(error))


class RoostError(Exception):
    """Base of all expected errors; ``exit_code`` is the exit code of the command."""

    exit_code = 1
    code = ""  # error code of the Placement API, if it defines one
    problem_type = ""  # name of the error under /v1, such as "state-lost"; empty: that of its HTTP status

    def __reduce__(self) -> tuple[Callable[..., "RoostError"], tuple[object, ...]]:
        # Pickle the fields, since ``__init__`` has other parameters than ``args``.
        return _restore, (type(self), self.args, self.__dict__)


class BadRequest(RoostError):
    """The request is invalid: fix it and send it again."""

    exit_code = 2

    def __init__(self, message: str, *, code: str = "") -> None:
        self.code = code
        super().__init__(message)


class BadFile(BadRequest):
    """A file has invalid content."""

    def __init__(self, path: str, problem: str, *, line: int | None = None, column: str | None = None) -> None:
        self.path, self.problem, self.line, self.column = path, problem, line, column
        place = path if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {problem}" if column is None else f"{place}: column {column}: {problem}")


class FileMissing(BadFile):
    """A file does not exist, or cannot be read."""

    exit_code = 4


class AccessDenied(RoostError):
    """The server does not know the token, or its policy does not allow the request."""

    exit_code = 10


class BadSettings(RoostError):
    """A setting is unknown or wrong.

    ``others`` are further problems of the same settings, in the order of the file.
    """

    exit_code = 3
    others: tuple["BadSettings", ...] = ()

    def __init__(self, path: str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"{path}: {problem}")


class SettingsMissing(BadSettings):
    """A file of settings, rules, tokens or certificates does not exist, or cannot be read."""

    exit_code = 4


class NotFound(RoostError):
    """An object of the request does not exist."""

    exit_code = 4

    def __init__(self, kind: str, name: str, *, message: str | None = None) -> None:
        self.kind, self.name = kind, name
        super().__init__(message or f"no such {kind}: {name}")


class StateLost(NotFound):
    """The state of a decision cannot be rebuilt, so it cannot be replayed."""

    problem_type = "state-lost"

    def __init__(self, decision: str, problem: str) -> None:
        super().__init__("state of decision", decision)
        self.problem = problem
        self.args = (f"decision {decision} cannot be replayed: {problem}",)


class ComputeHostMetricNotFound(NotFound):
    """A host does not report a required metric."""

    problem_type = "metric-missing"

    def __init__(self, *, host: str, node: str, name: str) -> None:
        self.host, self.node = host, node
        super().__init__(
            "metric", name, message=f"Metric {name} could not be found on the compute host node {host}.{node}."
        )


class Conflict(RoostError):
    """The object was modified concurrently: read again and retry."""

    exit_code = 5

    def __init__(self, message: str, *, code: str = "", problem_type: str = "") -> None:
        self.code, self.problem_type = code, problem_type
        super().__init__(message)


def race_conflict(message: str, *, code: str = "") -> Conflict:
    """Return the conflict of a request that lost against concurrent changes, so that nothing was written."""
    return Conflict(message, code=code, problem_type="lost-race")


class InUse(RoostError):
    """The object to delete still has allocations or children."""

    exit_code = 5


class NoValidHost(RoostError):
    """No host fits now."""

    exit_code = 6
    problem_type = "no-valid-host"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"No valid host was found. {reason}".rstrip())


class MaxRetriesExceeded(NoValidHost):
    """All permitted attempts to build an instance failed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.args = (f"Exceeded maximum number of retries. {reason}",)


class BuildFailed(RoostError):
    """A build failed on one host and may succeed on another; nothing of the guest remains."""


class BuildAborted(RoostError):
    """A build failed, and would fail on any host; nothing of the guest remains."""


class Unavailable(RoostError):
    """The request cannot be served now: retry later, or repair the subject of the message."""

    exit_code = 7


class OverBudget(Unavailable):
    """One read, or one search for hosts, exceeded its budget. Nothing was changed."""

    problem_type = "over-budget"

    def __init__(self, subject: str, *, seconds: float, limit: str) -> None:
        self.subject, self.seconds, self.limit = subject, seconds, limit
        super().__init__(f"{subject} took longer than {seconds:g} s (limit {limit}); request less at once")


class StoreBusy(Unavailable):
    """Another process serves this database."""

    problem_type = "database-unavailable"


class StoreGone(Unavailable):
    """The database server does not answer."""

    problem_type = "database-unavailable"


class StoreReplaced(Unavailable):
    """The database was restored or failed over since this process read it; nothing was written."""

    problem_type = "database-unavailable"


class StoreOutdated(Unavailable):
    """The schema of the database is older or newer than this program."""

    problem_type = "database-unavailable"


class StoreBroken(Unavailable):
    """The database is read-only, full, not one of Roost, or one of its rows is corrupt."""

    problem_type = "database-unavailable"


class StoreMissing(StoreBroken):
    """The database does not exist, or its file cannot be read."""

    exit_code = 4


class StoreCorrupt(StoreBroken):
    """The file or the pages of the database are corrupt."""

    exit_code = 8


class PlacementGone(Unavailable):
    """The remote Placement does not answer, or its answer is invalid."""

    problem_type = "placement-unavailable"

    def __init__(self, problem: str) -> None:
        super().__init__(f"the remote Placement cannot be used: {problem}")


class SyncFailed(Unavailable):
    """Placement accepted only a part of a host's inventory; that part stays."""


class JournalLost(Unavailable):
    """The journal of an agent cannot be read or written, or another agent has it open."""


class DriverNotReady(Unavailable):
    """The hypervisor of a driver does not answer yet."""


class AuditFailed(RoostError):
    """The database is inconsistent, or a replay differs from its decision."""

    exit_code = 8


class ReshapeNeeded(RoostError):
    """Inventories of a node must move to other providers or classes, with their allocations."""

    exit_code = 9

    def __init__(self, node: str, moved: str) -> None:
        self.node, self.moved = node, moved
        super().__init__(f"{moved} of node {node} must move to other providers or classes, with their allocations")


class ReshapeFailed(RoostError):
    """Inventories of a node could not move with their allocations; the message names any partial result."""

    exit_code = 9

    def __init__(self, node: str, problem: str) -> None:
        self.node, self.problem = node, problem
        super().__init__(f"the providers of node {node} cannot be reshaped: {problem}")


@contextmanager
def report_corruption(subject: str) -> Iterator[None]:
    """Raise ``StoreBroken`` if the block cannot decode stored data.

    Args:
        subject: name of the data, for the message.

    Raises:
        StoreBroken: the data cannot be decoded, or its parts do not fit together.
    """
    try:
        yield
    except (msgspec.MsgspecError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StoreBroken(f"the database is corrupt: {subject} cannot be understood: {first_line(error)}") from error


def _restore(kind: type[RoostError], args: tuple[object, ...], fields: dict[str, object]) -> RoostError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error
