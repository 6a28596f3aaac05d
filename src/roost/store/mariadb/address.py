"""The URL of a MariaDB database: ``mysql://user:password@host:port,host:port/database?unix_socket=path``.

The schemes and parameters are those of SQLAlchemy, as in OpenStack's configuration files, but with several hosts.
"""

import re
import ssl
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from roost.errors import BadSettings, quote_value

SCHEMES = ("mysql://", "mysql+pymysql://", "mariadb://", "mariadb+pymysql://")
_PORT = 3306
_PORT_MAX = 65_535
_HOST = re.compile(r"(\[[^]]*\]|[^:]*)(?::(.*))?")
_SSL = ("ssl_ca", "ssl_cert", "ssl_key")
# The character set of a connection is always utf8mb4.
_PARAMETERS = (*_SSL, "ssl_verify_cert", "unix_socket", "charset")


class Host(NamedTuple):
    """The address of a server; a socket is on this machine."""

    name: str
    port: int
    socket: str | None = None


class Address(NamedTuple):
    """The parts of a URL."""

    hosts: tuple[Host, ...]  # in order of preference
    user: str
    password: str
    database: str
    tls: ssl.SSLContext | None = None


def read_url(url: str) -> Address:
    """Return the parts of a URL.

    Raises:
        BadSettings: it is malformed.
    """
    try:
        parts = urlsplit(url)
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise BadSettings("store.url", "is malformed") from None
    for name in parameters:
        if name not in _PARAMETERS:
            raise BadSettings("store.url", f"has an unknown parameter {quote_value(name)}")
    account, _, hosts = parts.netloc.rpartition("@")
    user, _, password = account.partition(":")
    database = unquote(parts.path.removeprefix("/"))
    if not database:
        raise BadSettings("store.url", "must name a database, as in mysql://user:password@host/database")
    return Address(
        _hosts(hosts, parameters.get("unix_socket")), unquote(user), unquote(password), database, _ssl(parameters)
    )


def _hosts(text: str, socket: str | None) -> tuple[Host, ...]:
    if socket is not None:
        return (Host("localhost", _PORT, socket),)
    found = []
    for each in text.split(","):
        match = _HOST.fullmatch(each)
        name, port = ("", each) if match is None else (match[1], match[2] or str(_PORT))
        if not (port.isascii() and port.isdecimal() and 0 < int(port) <= _PORT_MAX):
            raise BadSettings("store.url", f"must have ports 1..{_PORT_MAX}, got {quote_value(port)}")
        found.append(Host(unquote(name.strip("[]")) or "localhost", int(port)))
    return tuple(found)


def _ssl(parameters: dict[str, Any]) -> ssl.SSLContext | None:
    if not any(name in parameters for name in _SSL):
        return None
    try:
        context = ssl.create_default_context(cafile=parameters.get("ssl_ca"))
        if parameters.get("ssl_verify_cert", "true").lower() in {"0", "false", "no"} or "ssl_ca" not in parameters:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if "ssl_cert" in parameters:
            context.load_cert_chain(parameters["ssl_cert"], parameters.get("ssl_key"))
    except OSError as error:
        raise BadSettings("store.url", f"names certificates that cannot be read: {error.strerror}") from None
    return context
