"""Cookies of browser sessions: their names, their attributes, and the check of requests with a cookie."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from roost.api.access.browser_session import Session, decode_base64url, unseal
from roost.api.http import Request
from roost.api.problems import Problem

KEY_HEADER = "x-roost-session-key"
TOKEN_HEADER = "x-auth-token"  # noqa: S105  # the name of a header
_SECRETS = frozenset({"cookie", KEY_HEADER})
# Methods for which browsers send no header ``origin`` to their own site.
_SAFE_METHODS = frozenset({"GET", "HEAD"})
# Names that never leave the machine. Browsers accept secure cookies from them over plain HTTP.
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_DEFAULT_PORTS = {"http": "80", "https": "443"}
# Cookies of one request to try: several paths or names can each have one.
_COOKIES_MAX = 8
_ENDED = "the session has ended, or cookie and x-roost-session-key do not match; sign in again"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """The server as the browser sees it."""

    scheme: str
    name: str  # with brackets around an IPv6 address
    port: str  # decimal; empty: that of the scheme

    @property
    def is_secure(self) -> bool:
        """Whether the browser accepts a secure cookie."""
        return self.scheme == "https" or self.name in _LOOPBACK


def open_session(request: Request, *, now_s: float, is_open: bool = False) -> None:
    """Replace cookie and key of a request by their token.

    Without a key, or with a token, the cookie has no effect. The request always loses both headers, and no other
    process receives them.

    Args:
        now_s: seconds since the epoch.
        is_open: whether the request needs no authentication; then an invalid session is ignored.

    Raises:
        Problem: 401, the session has ended; 403, the request comes from another page.
    """
    if _SECRETS.isdisjoint(request.headers):
        return
    cookies, key_text = request.headers.get("cookie", ""), request.headers.get(KEY_HEADER)
    request.headers = {name: text for name, text in request.headers.items() if name not in _SECRETS}
    if key_text is None or TOKEN_HEADER in request.headers or is_open:
        return
    check_page(request, needs_origin=request.method not in _SAFE_METHODS)
    session = _find_session(request, cookies, key_text, now_s=now_s)
    if session is None:
        raise Problem(401, _ENDED)
    request.headers = {**request.headers, TOKEN_HEADER: session.token}
    request.session_end_s = session.expires_at_s


def check_page(request: Request, *, needs_origin: bool = False) -> None:
    """Refuse a request from a page of another origin, whatever the CORS settings allow.

    Args:
        needs_origin: whether to refuse a request without an origin, too.

    Raises:
        Problem: 403.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    if site != "same-origin":
        raise Problem(403, "browser sessions are only for pages of this server: sec-fetch-site must be same-origin")
    if origin is None and needs_origin:
        raise Problem(403, "a change in a browser session needs the header origin")
    if origin is not None and origin.lower() not in _origins_of(request):
        raise Problem(
            403,
            "browser sessions are only for pages of this server: the header origin is not its address; "
            "a proxy must forward the header host",
        )


def cookie_header(request: Request, value: str, *, age_max_s: int) -> dict[str, str]:
    """Return the header for the cookie of a session; with an age of 0 the browser deletes it."""
    site = _site_of(request)
    secure = "; Secure" if site.is_secure else ""
    name = _cookie_name(site.port or _DEFAULT_PORTS[site.scheme], is_secure=site.is_secure)
    return {"set-cookie": f"{name}={value}; Max-Age={age_max_s}; Path=/; HttpOnly; SameSite=Strict{secure}"}


def is_plain_http(request: Request) -> bool:
    """Return whether the cookie of a session travels unencrypted to another machine."""
    return not _site_of(request).is_secure


def _find_session(request: Request, cookies: str, key_text: str, *, now_s: float) -> Session | None:
    key = decode_base64url(key_text)
    if key is None:
        return None
    for value in islice(_values_of(cookies, _names_of(request)), _COOKIES_MAX):
        session = unseal(value, key, now_s=now_s)
        if session is not None and _is_header_text(session.token):
            return session
    return None


def _is_header_text(token: str) -> bool:
    """Return whether a token could have arrived in a header: a client can seal any text with a key of its own."""
    return bool(token) and token == token.strip() and all(" " <= each != "\x7f" for each in token)


def _values_of(cookies: str, names: frozenset[str]) -> Iterator[str]:
    for pair in cookies.split(";"):
        name, _, value = pair.strip().partition("=")
        if name in names:
            yield value


def _names_of(request: Request) -> frozenset[str]:
    """Return the possible names of the cookie for the address of a request.

    Behind a proxy with TLS, a GET does not show the scheme of the browser.
    """
    site = _site_of(request)
    is_plain = site.scheme == "http"
    ports = (site.port,) if site.port else ("443", "80") if is_plain else ("443",)
    return frozenset(
        _cookie_name(port, is_secure=is_secure)
        for port in ports
        for is_secure in ((True, False) if is_plain else (True,))
    )


def _cookie_name(port: str, *, is_secure: bool) -> str:
    # Cookies do not distinguish ports, and several servers may run on one machine.
    return f"{'__Host-' if is_secure else ''}roost-{port}"


def _origins_of(request: Request) -> frozenset[str]:
    """Return the origins of pages of this server: a proxy can add TLS."""
    scheme, _, host = request.host_url.lower().partition("://")
    return frozenset({f"{scheme}://{host}", f"https://{host}"}) if host else frozenset()


def _site_of(request: Request) -> _Site:
    scheme, _, host = request.host_url.lower().partition("://")
    if host and request.headers.get("origin", "").lower() == f"https://{host}":
        scheme = "https"
    name, colon, port = host.rpartition(":")
    if colon and port.isascii() and port.isdecimal():
        return _Site(scheme=scheme, name=name, port=port)
    return _Site(scheme=scheme, name=host, port="")
