"""A keystoneauth adapter for the API in this process. A transport of ``requests`` replaces the network."""

import io
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import requests
import urllib3
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from requests.adapters import HTTPAdapter

from roost.api.placement.in_process import InProcess


class AdapterSession(NamedTuple):
    """An adapter and the session of ``requests`` below it."""

    adapter: Adapter
    requests_session: requests.Session

    def close(self) -> None:
        """Close the session."""
        self.requests_session.close()


class _Transport(HTTPAdapter):
    """A transport of ``requests`` to the application, without a socket."""

    def __init__(self, api: InProcess) -> None:
        super().__init__()
        self._api = api

    # The arguments are those of ``requests``.
    def send(  # noqa: PLR0917
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
        timeout: Any = None,
        verify: Any = True,  # noqa: FBT002
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Answer a request."""
        body = request.body or b""
        assert isinstance(body, str | bytes), "bodies in parts are not sent by an adapter"
        answer = self._api.request(
            request.method or "GET",
            request.url or "/",
            headers={name: _text(value) for name, value in request.headers.items()},
            body=body.encode() if isinstance(body, str) else body,
        )
        raw = urllib3.HTTPResponse(
            body=io.BytesIO(answer.body),
            headers=answer.headers,
            status=answer.status,
            reason=HTTPStatus(answer.status).phrase,
            preload_content=False,
        )
        return self.build_response(request, raw)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def open_adapter(api: InProcess, *, microversion: str | None) -> AdapterSession:
    """Open an adapter with a random address for this API only.

    Args:
        microversion: default microversion of requests.
    """
    address = f"http://{uuid.uuid4()}"
    requests_session = requests.Session()
    requests_session.trust_env = False  # Use no proxy.
    requests_session.mount(address, _Transport(api))
    adapter = Adapter(
        Session(session=requests_session),
        service_type="placement",
        endpoint_override=address,
        additional_headers={"x-auth-token": "admin"},
        default_microversion=microversion,
        raise_exc=False,
    )
    return AdapterSession(adapter, requests_session)
