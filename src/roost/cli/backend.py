"""The backend of commands such as ``roost host``: a server or a database, both used through the ``/v1`` API."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import click
import msgspec
from click.core import ParameterSource
from msgspec.structs import replace

from roost.cli import options
from roost.cli.connection.find_connection import DEFAULT_URL, Connection, connection_options, find_connection
from roost.cli.name_option import name_option
from roost.cli.output.list_view import ListView, Row
from roost.cli.output.output_options import Output
from roost.cli.output.sections import object_lines
from roost.errors import AccessDenied, BadRequest, Conflict, NotFound, RoostError, Unavailable

Command = TypeVar("Command", bound=Callable[..., Any])
_PREFIX = "/v1"
_JSON = "application/json"
_TIMEOUT_S = 60
_ERRORS: dict[int, type[RoostError]] = {
    400: BadRequest,
    401: AccessDenied,
    403: AccessDenied,
    409: Conflict,
    422: BadRequest,
    503: Unavailable,
}


class BackendOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that select a server or a database."""

    url: str | None
    token: str | None
    config: Path | None
    data: Path | None
    database: str | None = None
    token_file: Path | None = None
    profile: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether the options select a database."""
        return not (self.config is None and self.data is None and self.database is None)

    def check_one_source(self) -> None:
        """Refuse options that select both a server and a database.

        Raises:
            click.UsageError: they do.
        """
        for option, value in (("--url", self.url), ("--profile", self.profile)):
            if self.is_local and value is not None:
                raise click.UsageError(f"{option} cannot be combined with --config, --data or --database")


class _Transport(Protocol):
    def __call__(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a request; return status and body."""


class Api:
    """A client of Roost's own API, over HTTP or in this process.

    Args:
        transport: sends the requests.
        denied_advice: appended to the error of a server that refuses the token.
    """

    def __init__(self, transport: _Transport, *, denied_advice: str = "") -> None:
        self._transport, self._denied_advice = transport, denied_advice

    def request(
        self,
        method: str,
        *segments: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str | bool] | None = None,
    ) -> Any:
        """Send one request; return the decoded answer.

        Args:
            segments: the path below ``/v1``, one segment each.
            query: query parameters.

        Raises:
            BadRequest, NotFound, Conflict, Unavailable: by the status; BadRequest also if a segment is empty.
        """
        _check_nonempty(("a name", segment) for segment in segments)
        parameters = {name: _query_text(value) for name, value in (query or {}).items()}
        with _check_encoding():
            path = f"{_path(segments)}?{urlencode(parameters)}" if parameters else _path(segments)
        return self._request(method, path, {} if body is None else body)

    def list_all(self, name: str, /, **query: str | bool | None) -> list[dict[str, Any]]:
        """Fetch all pages of a list.

        Args:
            query: query parameters; None values are omitted.

        Raises:
            BadRequest, NotFound, Conflict, Unavailable: as for ``request``.
        """
        return list(self.iterate(name, **query))

    def iterate(self, name: str, /, **query: str | bool | None) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list, and fetch each page when it is needed.

        Args:
            query: query parameters; None values are omitted.

        Raises:
            BadRequest, NotFound, Conflict, Unavailable: as for ``request``.
        """
        parameters = {key: _query_text(value) for key, value in query.items() if value is not None}
        _check_nonempty(parameters.items())
        cursor: str | None = ""
        while cursor is not None:
            page_query = {**parameters, **({"cursor": cursor} if cursor else {})}
            with _check_encoding():
                path = f"{_path((name,))}?{urlencode(page_query)}"
            page = self._request("GET", path, None)
            if not isinstance(page, dict) or name not in page:
                raise BadRequest(f"the server is not Roost: its answer has no {name}")
            yield from page[name]
            cursor = page.get("next")

    def _request(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        is_sent = body is not None and method in {"POST", "PATCH", "PUT"}
        with _check_encoding():
            payload = msgspec.json.encode(body) if is_sent else b""
        status, raw = self._transport(method, path, payload)
        try:
            answer = msgspec.json.decode(raw) if raw else None
        except msgspec.DecodeError:
            raise BadRequest(f"the server is not Roost: status {status}, and the body is not JSON") from None
        if status < 400:
            return answer
        problem = answer if isinstance(answer, dict) else {}
        detail = str(problem.get("detail") or f"status {status} without a reason: is the server Roost?")
        detail = name_option(detail, str(problem.get("field", "")))
        if status == 404 or problem.get("missing"):
            raise NotFound("", "", message=detail)
        kind = _ERRORS.get(status, RoostError)
        raise kind(detail + self._denied_advice if kind is AccessDenied else detail)


def backend_options(command: Command) -> Command:
    """Add the options that select the backend, as one argument ``backend``. Put this decorator last."""

    def run(*, url: str | None, config: Path | None, data: Path | None, database: str | None, **more: Any) -> Any:
        words = {name: more.pop(name) for name in ("token", "token_file", "profile")}
        backend = BackendOptions(url=url, config=config, data=data, database=database, **words)
        # An option names the database of one command, so it overrides the environment.
        if backend.is_local and click.get_current_context().get_parameter_source("url") is ParameterSource.ENVIRONMENT:
            backend = replace(backend, url=None)
        return command(backend=backend, **more)

    run.__doc__ = command.__doc__
    for option in (
        click.option("--database", metavar="URL", help="URL of PostgreSQL or MariaDB, or path of a SQLite file."),
        options.data,
        options.config,
        connection_options,
    ):
        run = option(run)
    return run  # type: ignore[return-value]  # has the command's parameters except ``backend``


def server_api(connection: Connection) -> Api:
    """Return the API of a server."""
    url, profile = connection.url, connection.profile
    login = f"`roost login --profile {profile}`"
    advice = denied = ""
    if profile:
        advice = f"; profile {profile!r} has this URL, and {login} changes it"
    elif not url:
        advice = "; name a server with --url, or a database with --data or --database"
    if connection.has_own_token:
        denied = f"; the token is that of profile {profile!r}, and {login} replaces it"
    elif connection.other_profile:
        denied = f"; the token of profile {connection.other_profile!r} is only for its own server: use --token-file"
    return Api(_http_transport(url or DEFAULT_URL, connection.token, advice=advice), denied_advice=denied)


@contextmanager
def open_api(backend: BackendOptions, *, is_read_only: bool) -> Iterator[Api]:
    """Open the API on the database that ``--config``, ``--data`` or ``--database`` names, else on a server.

    Args:
        is_read_only: whether the command only reads; if so, a server may use the database at the same time.

    Raises:
        click.UsageError: the options name both a server and a database.
        NotFound, BadRequest: the options name no usable profile.
        Unavailable: the server or the database cannot be used.
    """
    if not backend.is_local:
        words = ("url", "token", "token_file", "profile")
        yield server_api(find_connection(**{name: getattr(backend, name) for name in words}))
        return
    backend.check_one_source()
    from roost.app import database_of_settings, open_own_api, settings_of

    settings = settings_of(backend.config, os.environ)
    url = backend.database or database_of_settings(settings, backend.data, os.environ)
    in_process = open_own_api(url, settings, is_read_only=is_read_only)

    # The changes of this process name the user of the machine, as an administrator without a project.
    headers = {"x-auth-token": f"{_user_name()}:", "x-roles": "admin", "content-type": _JSON}

    def transport(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        response = in_process.request(method, path.removeprefix(_PREFIX), headers=headers, body=body)
        return response.status, response.body

    try:
        yield Api(transport)
    finally:
        in_process.close()


def show_list(
    view: ListView, fetch: Callable[[Api], Iterable[Row]], *, backend: BackendOptions, output: Output
) -> None:
    """Print a list, and repeat it with ``--watch``.

    Args:
        fetch: requests the rows; with an iterator, ``--limit`` ends the requests early.

    Raises:
        click.UsageError: the options name a column that does not exist, or both a server and a database.
        Unavailable: the server or the database cannot be used.
    """
    with open_api(backend, is_read_only=True) as api:
        output.repeat(lambda: output.print_rows(view, fetch(api)))


def show_object(
    fetch: Callable[[Api], dict[str, Any]],
    lines: Callable[[dict[str, Any], Api], list[str]] = lambda document, _: object_lines(document),
    *,
    backend: BackendOptions,
    output: Output,
) -> None:
    """Print an object, and repeat it with ``--watch``.

    Args:
        fetch: requests the object.
        lines: makes its text; it may request related objects.

    Raises:
        click.UsageError: the options name both a server and a database.
        Unavailable: the server or the database cannot be used.
    """
    with open_api(backend, is_read_only=True) as api:

        def show() -> None:
            document = fetch(api)
            output.print_document(document, lambda: lines(document, api))

        output.repeat(show)


def parse_pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """Parse the ``KEY=VALUE`` values of an option.

    Raises:
        BadRequest: a value has another form.
    """
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise BadRequest(f"{option} must be KEY=VALUE, got {text!r}")
        pairs[key] = value
    return pairs


def _check_nonempty(values: Iterable[tuple[str, str]]) -> None:
    """Refuse empty values, such as an unset shell variable: a server would take an empty value for "all"."""
    for name, value in values:
        if not value:
            raise BadRequest(f"{name} must not be empty")


@contextmanager
def _check_encoding() -> Iterator[None]:
    """Refuse arguments that are not text in the encoding of the terminal."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise BadRequest(f"{error.object!r} is not text in the encoding of this terminal") from None


def _user_name() -> str:
    """Return the name of the user who runs this process; the user id if it has none."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _query_text(value: str | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path(segments: tuple[str, ...]) -> str:
    return _PREFIX + "".join(f"/{quote(segment, safe='')}" for segment in segments)


def _http_transport(url: str, token: str, *, advice: str) -> _Transport:
    import http.client

    from roost.client.outage_text import outage_sentence
    from roost.client.wire import check_prefix, parse_url_option

    address = parse_url_option(url, token=token)
    connection_class = http.client.HTTPSConnection if address.is_tls else http.client.HTTPConnection

    def transport(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        connection = connection_class(address.host, address.port, timeout=_TIMEOUT_S)
        headers = {"x-auth-token": token, "content-type": _JSON}
        try:
            connection.request(method, address.prefix + path, body or None, headers)
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(outage_sentence(error, url, advice=advice)) from None
        finally:
            connection.close()
        check_prefix(url, answer)
        return status, answer

    return transport
