"""Requests to Neutron's API."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import msgspec

from roost.client.keystone_login import KeystoneLogin, tls_context
from roost.client.outage_text import describe_outage
from roost.client.service_http import PAUSES_S, ServiceHttp
from roost.client.wire import LOST, Wire, decode_json
from roost.errors import Unavailable
from roost.nova.neutron.neutron_options import NeutronOptions

_REMOTE_MANAGED = "remote-managed"
_PAGES_MAX = 100


class NeutronRefusal(Exception):
    """Neutron answers with an error status."""

    def __init__(self, path: str, status: int) -> None:
        self.status = status
        super().__init__(f"Neutron answers {path} with status {status}")


class Port(msgspec.Struct, frozen=True, kw_only=True):
    """A port of an instance."""

    network: str
    subnet: str | None  # of its first address; None: it has no address yet
    is_remote_managed: bool


class NeutronAccess:
    """Login and address of Neutron. Threads may share it.

    Args:
        timeout_s: limit for an answer of Neutron or Keystone, unless the options have one.

    Raises:
        BadSettings: an option is missing or unknown, or the extra is not installed.
    """

    def __init__(self, options: NeutronOptions, *, timeout_s: float) -> None:
        self._options = options
        self._timeout_s = options.login.timeout_s or timeout_s
        self._login = KeystoneLogin(options.login, timeout_s=timeout_s, outage=neutron_outage)
        self._tls = tls_context(options.login)

    def connect(self) -> "NeutronApi":
        """Return a connection for one thread.

        Raises:
            BadSettings: Keystone's catalog has no endpoint of Neutron.
            Unavailable: Keystone does not answer, or refuses the login.
        """
        url = self._login.find_endpoint()
        wire = Wire(url, headers={}, timeout_s=self._timeout_s, setting=self._options.login.where, tls=self._tls)
        pauses_s = [PAUSES_S[min(at, len(PAUSES_S) - 1)] for at in range(self._options.retries)]
        return NeutronApi(ServiceHttp(wire, login=self._login, pauses_s=pauses_s))

    def check(self) -> None:
        """Log in once.

        Raises:
            BadSettings: Keystone refuses the login.
            Unavailable: Keystone does not answer.
        """
        self._login.check()


class NeutronApi:
    """A connection to Neutron, for one thread at a time. All methods raise the errors of ``get``.

    Source:
        nova/network/neutron.py. Nova reads a port with the token of the user; here all requests have the login of
        section ``[neutron]``.
    """

    def __init__(self, http: ServiceHttp) -> None:
        self._http = http

    @property
    def url(self) -> str:
        """The address of Neutron."""
        return self._http.wire.url

    def port(self, uuid: str, *, has_time: Callable[[], bool]) -> Port:
        """Return a port."""
        fields = [("fields", name) for name in ("network_id", "fixed_ips", "binding:vnic_type")]
        port = self._member(f"/ports/{quote(uuid, safe='')}?{urlencode(fields)}", "port", has_time=has_time)
        addresses = port.get("fixed_ips") or ()
        return Port(
            network=_text(port, "network_id"),
            subnet=_text(addresses[0], "subnet_id") if addresses else None,
            is_remote_managed=port.get("binding:vnic_type") == _REMOTE_MANAGED,
        )

    def segment_of_subnet(self, uuid: str, *, has_time: Callable[[], bool]) -> str | None:
        """Return the segment of a subnet; None: its network is not routed."""
        path = f"/subnets/{quote(uuid, safe='')}?fields=segment_id"
        segment: str | None = self._member(path, "subnet", has_time=has_time).get("segment_id")
        return segment

    def segments_of_network(self, uuid: str, *, has_time: Callable[[], bool]) -> tuple[str, ...]:
        """Return the segments of a network's subnets; empty: it is not routed."""
        query = [("network_id", uuid), ("fields", "segment_id")]
        found: dict[str, None] = {}
        marker: list[tuple[str, str]] = []
        for _ in range(_PAGES_MAX):
            body = self.get(f"/subnets?{urlencode([*query, *marker])}", has_time=has_time)
            for subnet in _items(body, "subnets"):
                if subnet.get("segment_id") is not None:
                    found[_text(subnet, "segment_id")] = None
            next_marker = _next_marker(body)
            if next_marker is None:
                return tuple(found)
            marker = [("marker", next_marker)]
        raise neutron_outage(f"its answer to /subnets has more than {_PAGES_MAX} pages")

    def has_extension(self, alias: str, *, has_time: Callable[[], bool] = lambda: True) -> bool:
        """Return whether Neutron has an extension of its API."""
        return any(
            each.get("alias") == alias for each in _items(self.get("/extensions", has_time=has_time), "extensions")
        )

    def get(self, path: str, *, has_time: Callable[[], bool]) -> dict[str, Any]:
        """Return the body of an answer.

        Args:
            path: below the version of the API.
            has_time: returns whether the request may still be sent.

        Raises:
            NeutronRefusal: the answer has an error status.
            Unavailable: no answer, no time, no token, or an answer that is not JSON.
        """
        if not has_time():
            raise neutron_outage("the time for its answers is over")
        try:
            reply = self._http.send("GET", f"/v2.0{path}", may_retry=has_time)
        except LOST as error:
            raise neutron_outage(f"{self.url}: {describe_outage(error, self.url)}") from None
        label = path.partition("?")[0]
        if reply.status != 200:
            raise NeutronRefusal(label, reply.status)
        body = decode_json(reply.text)
        if not isinstance(body, dict):
            raise neutron_outage(f"its answer to {label} is no JSON object")
        return body

    def _member(self, path: str, name: str, *, has_time: Callable[[], bool]) -> dict[str, Any]:
        found = self.get(path, has_time=has_time).get(name)
        if not isinstance(found, dict):
            raise neutron_outage(f"its answer has no {name}")
        return found

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def neutron_outage(problem: str) -> Unavailable:
    """Return the error for a Neutron without a usable answer."""
    return Unavailable(f"Neutron cannot be used: {problem}")


def _items(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    items = body.get(name)
    if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
        raise neutron_outage(f"its answer has no list of {name}")
    return items


def _text(record: Any, name: str) -> str:
    value = record.get(name) if isinstance(record, dict) else None
    if not isinstance(value, str) or not value:
        raise neutron_outage(f"its answer has no {name}")
    return value


def _next_marker(body: dict[str, Any]) -> str | None:
    """Return the marker of the next page; None: this is the last one."""
    for link in body.get("subnets_links") or ():
        if isinstance(link, dict) and link.get("rel") == "next":
            return parse_qs(urlsplit(str(link.get("href"))).query).get("marker", [None])[0]
    return None
