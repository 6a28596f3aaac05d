"""Host names under which a server without authentication answers, as a defence against DNS rebinding.

A malicious site can resolve its own name to 127.0.0.1. For the browser, a request to this server then has the same
origin as the page.
"""

import ipaddress

from roost.api.http import Request
from roost.api.problems import Problem
from roost.model.settings.placement_settings import Placement as Settings

_ANY = "*"
_CROSS_SITE = frozenset({"cross-site", "same-site"})  # values of the header sec-fetch-site, which pages cannot set


class AllowedHosts:
    """The host names that requests may use.

    Args:
        settings: the allowed origins, and the allowed names besides IP addresses and localhost.
    """

    def __init__(self, settings: Settings) -> None:
        listening, _, _ = settings.listen.rpartition(":")
        self._names = frozenset(map(str.lower, ("localhost", listening, *settings.allowed_hosts)))
        self._origins = frozenset(settings.cors_allowed_origin)

    @classmethod
    def from_settings(cls, settings: Settings) -> "AllowedHosts | None":
        """Return the allowed names; None: credentials protect the server, so foreign pages are no threat."""
        return cls(settings) if settings.auth_strategy == "noauth2" else None

    def check(self, request: Request) -> None:
        """Refuse a request under another host name, or from a page of another site.

        Raises:
            Problem: 421 or 403.
        """
        self.check_name(request.headers.get("host", ""))
        if request.headers.get("sec-fetch-site") in _CROSS_SITE:
            origin = request.headers.get("origin")
            if self._origins.isdisjoint({_ANY, origin}):
                raise Problem(
                    403, "Requests from pages of other sites are not allowed (setting placement.cors_allowed_origin)."
                )

    def check_name(self, host: str) -> None:
        """Refuse another host name; no name is accepted, too.

        Raises:
            Problem: 421.
        """
        if host and not self._is_own(host):
            raise Problem(421, f"{host[:255]} is not a name of this server (setting placement.allowed_hosts).")

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
