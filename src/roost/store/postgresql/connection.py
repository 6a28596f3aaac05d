"""A connection to PostgreSQL with a deadline for each statement, even if the server hangs."""

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import Diagnostic

Result = TypeVar("Result")
LABEL = "the PostgreSQL database"
_WAIT_FOR_STANDBY = "SyncRepWaitForLSN"
# SQLSTATEs of errors that make a connection unusable, even if a proxy keeps it open: the class of connection errors;
# read-only, as on a standby or a demoted primary; a server that is stopping, has crashed or is starting.
_CONNECTION_ERRORS = "08"
READ_ONLY = "25006"
_FATAL_STATES = frozenset({READ_ONLY, "57P01", "57P02", "57P03"})


class DeadlinePassed(psycopg.OperationalError):
    """The server sent nothing until the deadline; the connection was closed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that closes if a statement gets no answer in time.

    The kernel of a machine with a frozen server still acknowledges packets and keepalives, so neither TCP nor libpq
    detects the failure.
    """

    deadline_s = 60.0
    # Whether the server confirmed a commit that no synchronous standby has.
    is_unconfirmed = False

    def drop(self) -> None:
        """See ``Droppable``."""
        self.close()

    def check_notice(self, notice: Diagnostic) -> None:
        """Check a notice of the server: it may report a commit that no synchronous standby has.

        If ``pg_cancel_backend`` or a ``statement_timeout`` cancels the wait for the standby, the server answers with
        success and a warning. The text of the warning may be in any language, but the name of its function is fixed.
        """
        text = notice.message_primary or ""
        if notice.source_function == _WAIT_FOR_STANDBY or "for synchronous replication" in text:
            self.is_unconfirmed = True

    def wait(self, gen: PQGen[Result], *arguments: Any, **options: Any) -> Result:
        """Run one exchange with the server; all of psycopg's statements and transactions pass through here.

        Args:
            gen: the exchange.
            arguments, options: further arguments of psycopg, which differ between its versions.

        Raises:
            DeadlinePassed: there was no answer in time.
        """
        try:
            return super().wait(_limit(gen, self.deadline_s), *arguments, **options)
        except DeadlinePassed:
            self.close()
            raise


def _limit(gen: PQGen[Result], seconds: float) -> PQGen[Result]:
    """Return an exchange that ends at a deadline.

    While nothing arrives, psycopg resumes it every tenth of a second with a false value.
    """
    end_s = time.monotonic() + seconds
    try:
        event = next(gen)
        while True:
            ready = yield event
            if not ready and time.monotonic() > end_s:
                raise DeadlinePassed(seconds)
            event = gen.send(ready)
    except StopIteration as end:
        result: Result = end.value
        return result


def state_of(error: BaseException) -> str:
    """Return the SQLSTATE of an error of PostgreSQL, or of its cause; empty: it has none."""
    found = error if isinstance(error, psycopg.Error) else error.__cause__
    return (found.sqlstate or "") if isinstance(found, psycopg.Error) else ""


def is_fatal(state: str) -> bool:
    """Return whether a connection is unusable after an error with this SQLSTATE."""
    return state in _FATAL_STATES or state.startswith(_CONNECTION_ERRORS)
