"""A connection to PostgreSQL whose statements end in bounded time, whatever the server does."""

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

Result = TypeVar("Result")


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
