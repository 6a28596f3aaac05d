"""A connection to PostgreSQL whose statements end in bounded time, whatever the server does."""

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import Diagnostic

Result = TypeVar("Result")
_WAIT_FOR_STANDBY = "SyncRepWaitForLSN"
# Classes and codes of errors after which a connection is of no use, whether the server closed it or a proxy kept it:
# connection errors; read-only, since only a standby or a demoted primary is; the server stops, crashed or starts.
_CONNECTION_ERRORS = "08"
READ_ONLY = "25006"
_LAST_WORDS = frozenset({READ_ONLY, "57P01", "57P02", "57P03"})


class DeadlinePassed(psycopg.OperationalError):
    """The server sent nothing until the deadline; the connection was closed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed when a statement gets no answer in time.

    The kernel of a frozen machine acknowledges packets and keepalives, so neither TCP nor libpq notices that its
    server does not run.
    """

    deadline_s = 60.0
    # Whether a commit was answered although no synchronous standby has it.
    is_unconfirmed = False

    def note(self, notice: Diagnostic) -> None:
        """Look at a notice of the server: a commit that waits for a standby may be answered before it has it.

        The server answers with success and a warning when the wait is cancelled, by ``pg_cancel_backend`` or a
        ``statement_timeout``. The text is in the language of the server; the name of the function is not.
        """
        text = notice.message_primary or ""
        if notice.source_function == _WAIT_FOR_STANDBY or "for synchronous replication" in text:
            self.is_unconfirmed = True

    def wait(self, gen: PQGen[Result], *arguments: Any, **options: Any) -> Result:
        """Run one exchange with the server; all of psycopg's statements and transactions pass through here.

        Args:
            gen: the exchange.
            arguments: as psycopg passes them; they differ between its versions.
            options: the same by name.

        Raises:
            DeadlinePassed: there was no answer.
        """
        try:
            return super().wait(_limit(gen, self.deadline_s), *arguments, **options)
        except DeadlinePassed:
            self.close()
            raise


def _limit(gen: PQGen[Result], seconds: float) -> PQGen[Result]:
    """Return an exchange that ends at a deadline.

    psycopg wakes it every tenth of a second while nothing arrives, with a value that is false.
    """
    end_s = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end_s:
                raise DeadlinePassed(seconds)
            wanted = gen.send(ready)
    except StopIteration as end:
        result: Result = end.value
        return result


def state_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error of PostgreSQL, or of the one that caused it; empty: it has none."""
    found = error if isinstance(error, psycopg.Error) else error.__cause__
    return (found.sqlstate or "") if isinstance(found, psycopg.Error) else ""


def is_last(state: str) -> bool:
    """Return whether a connection is of no use after an error with this SQLSTATE."""
    return state in _LAST_WORDS or state.startswith(_CONNECTION_ERRORS)
