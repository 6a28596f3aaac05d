"""A client of the Placement API in process, for installations without keystoneauth1."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from roost.api.http import JSON, Response
from roost.api.placement.in_process import InProcess

_TOKEN = "admin"  # noqa: S105  # an administrator for noauth2


class Headers(dict[str, str]):
    """Headers of a response, case-insensitive."""

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        """Return a header, or the default."""
        return super().get(name.lower(), default)


class Answer:
    """A response with the interface of ``requests``."""

    def __init__(self, response: Response) -> None:
        self.status_code = response.status
        self.headers = Headers(response.headers)
        self.content = response.body

    @property
    def ok(self) -> bool:
        """Whether the status is not an error."""
        return self.status_code < 400

    @property
    def text(self) -> str:
        """The body as text."""
        return self.content.decode()

    def json(self) -> Any:
        """Return the decoded body.

        Raises:
            ValueError: the body is not JSON.
        """
        return msgspec.json.decode(self.content)


class Client:
    """Requests by method, as an administrator.

    Args:
        api: the API in process.
        microversion: default microversion of requests, such as ``1.39`` or ``latest``; None: the oldest.
    """

    def __init__(self, api: InProcess, *, microversion: str | None = None) -> None:
        self._api = api
        self._microversion = microversion

    def request(
        self,
        url: str,
        method: str,
        *,
        microversion: str | None = None,
        json: object = None,
        data: bytes | str = b"",
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request.

        Args:
            json: the body, as JSON; None: ``data`` is the body.
            headers: additional headers; they override the defaults.
            params: additional query parameters.

        Raises:
            Unavailable: the ``with`` block has ended.
        """
        body = data.encode() if isinstance(data, str) else data
        sent = {"x-auth-token": _TOKEN, "accept": JSON, "content-length": str(len(body))}
        if json is not None:
            body = msgspec.json.encode(json)
            sent |= {"content-type": JSON, "content-length": str(len(body))}
        version = microversion or self._microversion
        if version is not None:
            sent["openstack-api-version"] = f"placement {version}"
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        if params:
            url += ("&" if "?" in url else "?") + urlencode(params)
        return Answer(self._api.request(method.upper(), url, headers=sent, body=body))

    def get(self, url: str, **options: Any) -> Answer:
        """Read a resource; see ``request``."""
        return self.request(url, "GET", **options)

    def put(self, url: str, **options: Any) -> Answer:
        """Create or replace a resource; see ``request``."""
        return self.request(url, "PUT", **options)

    def post(self, url: str, **options: Any) -> Answer:
        """Add to a resource; see ``request``."""
        return self.request(url, "POST", **options)

    def delete(self, url: str, **options: Any) -> Answer:
        """Delete a resource; see ``request``."""
        return self.request(url, "DELETE", **options)
