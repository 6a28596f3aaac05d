"""An API without a server: requests are answered in the calling process."""

from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

from roost.api.asgi import Api
from roost.api.http import Batch, Request, Response, new_request_id
from roost.api.outages import Outages
from roost.errors import BadSettings, RoostError, Unavailable
from roost.placement.deciding_thread import Serving


class InProcess:
    """Calls the application as HTTP requests do, without sockets; usable from any number of threads.

    Args:
        has_log: whether errors of the database and the settings go to the log; False: they are raised.
        on_close: releases further resources.
    """

    def __init__(
        self,
        application: Api,
        serving: Serving,
        *,
        has_log: bool = True,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._application, self._on_close = application, on_close
        self._raised: tuple[type[RoostError], ...] = () if has_log else (Unavailable, BadSettings)
        self._serving: Serving | None = serving
        self._outages = Outages()

    def request(self, method: str, url: str, *, headers: Mapping[str, str], body: bytes = b"") -> Response:
        """Answer one request; errors are responses, too.

        Args:
            url: with or without scheme and host; locations in responses begin with them.
            headers: names in any case.

        Raises:
            Unavailable: ``close`` was called; or, without a log, the database cannot be used.
            BadSettings: without a log, the settings of a stored decision cannot be used.
        """
        serving = self._serving  # Read once: another thread may call ``close``.
        if serving is None:
            raise Unavailable("this in-process API is closed: enter its context again")
        parts = urlsplit(url)
        incoming = Request(
            method=method,
            path=unquote(parts.path),
            query_string=parts.query,
            headers={name.lower(): value for name, value in headers.items()},
            body=body,
            host_url=f"{parts.scheme}://{parts.netloc}" if parts.netloc else "",
            request_id=new_request_id(),
        )
        try:
            entered = self._application.enter(incoming)
            if isinstance(entered, Response):
                return entered
            assert not isinstance(entered, Batch), "the Placement API has no batches"
            response = serving.run(self._outages.track(incoming, entered))
            self._outages.record_success(incoming)
            return self._application.finish(incoming, response)
        except self._raised:
            raise
        except RoostError as error:
            self._outages.record_failure(incoming, error)
            return self._application.fail(incoming, error)

    def close(self) -> None:
        """Finish requests in progress, end the thread, and release the database."""
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.stop()
            self._on_close()
