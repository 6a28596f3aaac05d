"""The APIs of the cloud, as its administrator."""

import http.client
import json
import time
from typing import Any
from urllib.parse import urlsplit

from tests.bed.conf_files import PASSWORD, Places

Json = Any
_TOKEN_S = 1800
_VERSIONS = {"nova": "compute 2.96", "placement": "placement 1.39"}
_TIMEOUT_S = 120


class Refusal(Exception):
    """A response with a status of 400 or more."""

    def __init__(self, call: str, status: int, body: Json) -> None:
        super().__init__(f"{call}: {status} {str(body)[:500]}")
        self.status, self.body = status, body

    @property
    def message(self) -> str:
        """The status and the text of the error."""
        first = next(iter(self.body.values()), "") if isinstance(self.body, dict) else self.body
        return f"{self.status} {first['message'] if isinstance(first, dict) and 'message' in first else first}"


class CloudApi:
    """A client of all services; its calls may come from several threads."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._token, self._token_end_s = "", 0.0
        self.project = ""

    def call(self, service: str, method: str, path: str, body: Json = None) -> Json:
        """Send a request; return the decoded body.

        Raises:
            Refusal: the status is 400 or more.
        """
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        headers = {"x-auth-token": self._valid_token(), "content-type": kind}
        if service in _VERSIONS:
            headers["openstack-api-version"] = _VERSIONS[service]
        status, _, text = _send(method, self._places.url(service) + path, data, headers)
        answer = _decode(text)
        if status >= 400:
            raise Refusal(f"{method} {service}{path}", status, answer)
        return answer

    def _valid_token(self) -> str:
        if time.monotonic() > self._token_end_s:
            user = {"name": "admin", "domain": {"id": "default"}, "password": PASSWORD}
            scope = {"project": {"name": "admin", "domain": {"id": "default"}}}
            body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
            url = self._places.url("keystone") + "/auth/tokens"
            status, headers, text = _send("POST", url, json.dumps(body).encode(), {"content-type": "application/json"})
            if status >= 400:
                raise Refusal("POST /auth/tokens", status, _decode(text))
            self.project = json.loads(text)["token"]["project"]["id"]
            self._token, self._token_end_s = headers["x-subject-token"], time.monotonic() + _TOKEN_S
        return self._token

    def providers(self) -> dict[str, str]:
        """Return the uuids of all providers, by name."""
        found = self.call("placement", "GET", "/resource_providers")["resource_providers"]
        return {each["name"]: each["uuid"] for each in found}

    def computes(self) -> list[Json]:
        """Return the compute services."""
        return list(self.call("nova", "GET", "/os-services?binary=nova-compute")["services"])

    def upload_image(self, name: str) -> str:
        """Create a tiny image; return its identifier."""
        body = {"name": name, "disk_format": "raw", "container_format": "bare", "visibility": "public"}
        image = str(self.call("glance", "POST", "/v2/images", body)["id"])
        self.call("glance", "PUT", f"/v2/images/{image}/file", name.encode() * 64)
        return image


def _send(method: str, url: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)
    try:
        connection.request(method, parts.path + (f"?{parts.query}" if parts.query else ""), body=data, headers=headers)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def _decode(text: bytes) -> Json:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")
