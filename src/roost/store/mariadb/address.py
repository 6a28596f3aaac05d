"""The URL of a MariaDB database: ``mysql://user:password@host:port,host:port/database?unix_socket=path``.

The schemes and parameters are those of SQLAlchemy, as in OpenStack's configuration files, but with several hosts.
"""

import re
import ssl
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from roost.errors import BadSettings, quote_value
from roost.store.servers.url_ports import check_port

SCHEMES = ("mysql://", "mysql+pymysql://", "mariadb://", "mariadb+pymysql://")
_PORT = 3306
_HOST = re.compile(r"(\[[^]]*\]|[^:]*)(?::(.*))?")
_TLS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_verify_cert")
_FALSE = {"0", "false", "no"}
# The character set of a connection is always utf8mb4.
_PARAMETERS = (*_TLS, "unix_socket", "charset")


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
    account, _, host_text = parts.netloc.rpartition("@")
    user, _, password = account.partition(":")
    hosts = _hosts(host_text, parameters.get("unix_socket"))
    for name in parameters:
        if name not in _PARAMETERS:
            raise BadSettings("store.url", f"has an unknown parameter {quote_value(name)}")
    database = unquote(parts.path.removeprefix("/"))
    if not database:
        raise BadSettings("store.url", "must name a database, as in mysql://user:password@host/database")
    return Address(hosts, unquote(user), unquote(password), database, _tls(parameters))


def _hosts(text: str, socket: str | None) -> tuple[Host, ...]:
    if socket is not None:
        return (Host("localhost", _PORT, socket),)
    found = []
    for each in text.split(","):
        match = _HOST.fullmatch(each)
        name, port = ("", each) if match is None else (match[1], match[2] or str(_PORT))
        found.append(Host(unquote(name.strip("[]")) or "localhost", check_port(port)))
    return tuple(found)


def _tls(parameters: dict[str, Any]) -> ssl.SSLContext | None:
    """Return the context of TLS; None: no parameter turns it on."""
    if not any(name in parameters for name in _TLS):
        return None
    is_checked = parameters.get("ssl_verify_cert", str("ssl_ca" in parameters)).lower() not in _FALSE
    try:
        context = ssl.create_default_context(cafile=parameters.get("ssl_ca"))
        if not is_checked:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if "ssl_cert" in parameters:
            context.load_cert_chain(parameters["ssl_cert"], parameters.get("ssl_key"))
    except OSError as error:
        raise BadSettings("store.url", f"names certificates that cannot be read: {error.strerror}") from None
    return context
