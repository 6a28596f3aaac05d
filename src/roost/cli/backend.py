"""Where the commands of the nouns ask: a server, or a database that nobody serves; both answer as ``/v1`` does."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import click
import msgspec

from roost.cli import options
from roost.cli.text.plain_text import json_text
from roost.cli.token_source import token as token_option
from roost.errors import BadRequest, Conflict, NotFound, RoostError, Unavailable

Command = TypeVar("Command", bound=Callable[..., Any])
_URL = "http://127.0.0.1:8780"
_PREFIX = "/v1"
_JSON = "application/json"
_TIMEOUT_S = 60
_ERRORS: dict[int, type[RoostError]] = {400: BadRequest, 409: Conflict, 422: BadRequest, 503: Unavailable}


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """What the options say of where to ask."""

    url: str | None
    token: str
    config: Path | None
    data: Path | None


class _Way(Protocol):
    def __call__(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Ask; return status and body."""


class Api:
    """Roost's own API, asked over a connection or in this process."""

    def __init__(self, way: _Way) -> None:
        self._way = way

    def ask(
        self,
        method: str,
        *steps: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str | bool] | None = None,
    ) -> Any:
        """Ask for one thing; return what is answered, decoded.

        Args:
            steps: of the path below ``/v1``.
            query: what follows it; None: nothing.

        Raises:
            BadRequest, NotFound, Conflict, Unavailable: as the answer says; BadRequest also if a name is empty.
        """
        _check_filled(("a name", step) for step in steps)
        said = {name: _word(value) for name, value in (query or {}).items()}
        with _sendable():
            path = f"{_path(steps)}?{urlencode(said)}" if said else _path(steps)
        return self._asked(method, path, {} if body is None else body)

    def listed(self, name: str, /, **query: str | bool | None) -> list[dict[str, Any]]:
        """Return a whole list, page by page.

        Args:
            query: what is asked for; what is None goes unsaid.

        Raises:
            BadRequest, NotFound, Conflict, Unavailable: as for ``ask``.
        """
        said = {key: _word(value) for key, value in query.items() if value is not None}
        _check_filled(said.items())
        found: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            asked = {**said, **({"cursor": cursor} if cursor else {})}
            with _sendable():
                path = f"{_path((name,))}?{urlencode(asked)}"
            page = self._asked("GET", path, None)
            if not isinstance(page, dict) or name not in page:
                raise BadRequest(f"what answers there is not Roost: it tells no {name}")
            found += page[name]
            cursor = page.get("next")
        return found

    def _asked(self, method: str, path: str, body: Mapping[str, object] | None) -> Any:
        is_sent = body is not None and method in {"POST", "PATCH", "PUT"}
        with _sendable():
            sent = msgspec.json.encode(body) if is_sent else b""
        status, answered = self._way(method, path, sent)
        try:
            told = msgspec.json.decode(answered) if answered else None
        except msgspec.DecodeError:
            raise BadRequest(f"what answers there is not Roost: status {status}, and no JSON") from None
        if status < 400:
            return told
        detail = told.get("detail") if isinstance(told, dict) else None
        detail = str(detail or f"status {status}, and no reason is told: is it Roost that answers there?")
        if status == 404:
            raise NotFound("", "", message=detail)
        raise _ERRORS.get(status, RoostError)(detail)


def where(command: Command) -> Command:
    """Add the options that say where to ask, as one argument ``place``; other options come before."""

    def gathered(url: str | None, token: str, config: Path | None, *, data: Path | None, **more: Any) -> Any:
        return command(place=Where(url=url, token=token, config=config, data=data), **more)

    gathered.__doc__ = command.__doc__
    for option in (
        options.data,
        options.config,
        token_option(),
        click.option("--url", envvar="ROOST_URL", metavar="URL", help=f"Of the server.  [{_URL}]"),
    ):
        gathered = option(gathered)
    return gathered  # type: ignore[return-value]  # takes what the command takes, but for ``place``


as_json = click.option("--json", "is_json", is_flag=True, help="For programs.")


@contextmanager
def asking(place: Where, *, is_read: bool) -> Iterator[Api]:
    """Open the way to the API: the database itself where ``--config`` or ``--data`` names one, else a server.

    Args:
        is_read: whether nothing is changed, so that a database may be served meanwhile.

    Raises:
        click.UsageError: a server and a database are named.
        Unavailable: neither can be asked.
    """
    if place.config is None and place.data is None:
        yield Api(_over_http(place.url or _URL, place.token))
        return
    if place.url is not None:
        raise click.UsageError("name a server with --url, or a database with --config or --data")
    from roost.app import database_of_settings, open_own_api, settings_of

    settings = settings_of(place.config, os.environ)
    own = open_own_api(database_of_settings(settings, place.data, os.environ), settings, is_read=is_read)

    def way(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        answered = own.ask(
            method, path.removeprefix(_PREFIX), headers={"x-auth-token": "admin", "content-type": _JSON}, body=body
        )
        return answered.status, answered.body

    try:
        yield Api(way)
    finally:
        own.close()


def told(found: object, *, is_json: bool, lines: Callable[[], list[str]]) -> None:
    """Print what was found: as JSON, or as lines for people."""
    click.echo(json_text(msgspec.json.encode(found)) if is_json else "\n".join(lines()))


def pairs_of(texts: tuple[str, ...]) -> dict[str, str]:
    """Return what ``KEY=VALUE`` words say.

    Raises:
        BadRequest: one is none.
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise BadRequest(f"{text!r} is not KEY=VALUE")
        found[key] = value
    return found


def _check_filled(said: Iterable[tuple[str, str]]) -> None:
    """Refuse what is empty, as a variable of a script that was never set: to a server it would mean all there is."""
    for name, value in said:
        if not value:
            raise BadRequest(f"{name} must not be empty")


@contextmanager
def _sendable() -> Iterator[None]:
    """Refuse words that came in another encoding than the terminal's, so that nobody knows what they say."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise BadRequest(f"{error.object!r} is no text in the encoding of this terminal") from None


def _word(value: str | bool | None) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path(steps: tuple[str, ...]) -> str:
    return _PREFIX + "".join(f"/{quote(step, safe='')}" for step in steps)


def _over_http(url: str, token: str) -> _Way:
    import http.client

    from roost.client.wire import given_address

    address = given_address(url, token=token)
    kind = http.client.HTTPSConnection if address.is_tls else http.client.HTTPConnection

    def way(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        connection = kind(address.host, address.port, timeout=_TIMEOUT_S)
        headers = {"x-auth-token": token, "content-type": _JSON}
        try:
            connection.request(method, address.prefix + path, body or None, headers)
            answered = connection.getresponse()
            return answered.status, answered.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"{url} does not answer: {error}") from None
        finally:
            connection.close()

    return way
