"""Names under which a server answers that believes everybody, so that no page of a browser asks it by another one.

A page may let the name of its own site mean 127.0.0.1 (DNS rebinding); to the browser such requests are of one origin.
"""

import ipaddress

from roost.api.http import Request
from roost.api.problems import Problem
from roost.model.settings.placement_settings import Placement as Settings

_ANY = "*"
_CROSS_SITE = frozenset({"cross-site", "same-site"})  # of header sec-fetch-site, which pages cannot set


class AllowedHosts:
    """The names that requests may give the server.

    Args:
        settings: names beside addresses and localhost, and origins that are let in anyway.
    """

    def __init__(self, settings: Settings) -> None:
        listening, _, _ = settings.listen.rpartition(":")
        self._names = frozenset(map(str.lower, ("localhost", listening, *settings.allowed_hosts)))
        self._origins = frozenset(settings.cors_allowed_origin)

    @classmethod
    def from_settings(cls, settings: Settings) -> "AllowedHosts | None":
        """Return what settings say; None: credentials protect the server, which no foreign page has."""
        return cls(settings) if settings.auth_strategy == "noauth2" else None

    def check(self, request: Request) -> None:
        """Refuse a request under another name, and one of a page of another site.

        Raises:
            Problem: 421 or 403.
        """
        host = request.headers.get("host", "")
        if host and not self._is_own(host):
            raise Problem(421, f"{host[:255]} is not a name of this server (setting placement.allowed_hosts).")
        if request.headers.get("sec-fetch-site") in _CROSS_SITE:
            origin = request.headers.get("origin")
            if self._origins.isdisjoint({_ANY, origin}):
                raise Problem(403, "Pages of other sites may not ask (setting placement.cors_allowed_origin).")

    def _is_own(self, host: str) -> bool:
        name = _without_port(host).removesuffix(".").lower()
        return name in self._names or _ANY in self._names or _is_address(name)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and not host.endswith("]") and (port.isdecimal() or not port) else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
