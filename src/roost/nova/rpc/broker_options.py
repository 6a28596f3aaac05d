"""Options of nova.conf for brokers, queues and heartbeats, with the defaults of oslo.messaging."""

import socket
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from roost.compat.ini import Ini, read_truth
from roost.errors import BadSettings, quote_value

T = TypeVar("T")
RABBIT = "oslo_messaging_rabbit"
_PORT = 5672
SCHEMES = ("rabbit", "kombu", "kombu+rabbit", "rabbit+ssl")
_LOGIN_METHODS = ("AMQPLAIN", "PLAIN", "EXTERNAL")
# Options whose effect Roost does not have, if they are true or not empty.
_UNSUPPORTED = ("use_queue_manager", "rabbit_stream_fanout", "kombu_compression", "ssl_enforce_fips_mode")
# Current name -> names in older files.
_OLD_NAMES: Mapping[str, tuple[str, ...]] = {
    "ssl": ("rabbit_use_ssl",),
    "ssl_key_file": ("kombu_ssl_keyfile",),
    "ssl_cert_file": ("kombu_ssl_certfile",),
    "ssl_ca_file": ("kombu_ssl_ca_certs",),
    "kombu_missing_consumer_retry_timeout": ("kombu_reconnect_timeout",),
    "amqp_durable_queues": ("rabbit_durable_queues",),
}


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a broker, and the login there."""

    host: str
    port: int = _PORT
    user: str = "guest"
    password: str = "guest"  # noqa: S105  # the default of RabbitMQ

    @property
    def address(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"Broker({self.address})"


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """Files for TLS; without ``ca_file`` no certificate of a broker is verified."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verifies_host: bool = True


class QuorumLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of quorum queues; 0: the broker's own."""

    delivery_limit: int = 0
    max_memory_length: int = 0
    max_memory_bytes: int = 0


class BrokerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Brokers, queues and heartbeats; names of options stay those of nova.conf.

    Args:
        tls: None: connections are not encrypted.
        host: the name of this server, in the name of its queue.
        control_exchange: the exchange of calls and of notifications.
        heartbeat_timeout_threshold: seconds without a sign of life before a connection is closed; 0: no heartbeats.
        heartbeat_rate: heartbeats during that time.
        rabbit_retry_interval, rabbit_retry_backoff, rabbit_interval_max: seconds before a new attempt to connect:
            the first one, the increase, and the longest.
        missing_queue_s: seconds of further attempts to send a reply to a missing queue.
    """

    brokers: tuple[Broker, ...]
    virtual_host: str = "/"
    login_method: str = "AMQPLAIN"
    tls: Tls | None = None
    host: str = msgspec.field(default_factory=socket.gethostname)
    control_exchange: str = "nova"
    amqp_durable_queues: bool = False
    amqp_auto_delete: bool = False
    rabbit_ha_queues: bool = False
    rabbit_quorum_queue: bool = False
    rabbit_transient_quorum_queue: bool = False
    quorum_limits: QuorumLimits = QuorumLimits()
    rabbit_transient_queues_ttl: int = 1800
    heartbeat_timeout_threshold: int = 60
    heartbeat_rate: int = 3
    rabbit_retry_interval: int = 1
    rabbit_retry_backoff: int = 2
    rabbit_interval_max: int = 30
    rpc_response_timeout: int = 60
    missing_queue_s: int = 60


def read_broker_options(ini: Ini, *, url_section: str = "DEFAULT") -> BrokerOptions:
    """Read the options of a file.

    Args:
        url_section: section with the option ``transport_url``.

    Raises:
        BadSettings: an option is invalid, or needs a feature unknown to Roost.
    """
    read = _Reader(ini, url_section)
    for option in _UNSUPPORTED:
        if (text := read.text(option, "")) and _has_effect(text):
            problem = "is not supported; remove it, also from the callers of this service"
            raise read.build_error(RABBIT, option, problem)
    brokers, virtual_host, has_tls_scheme = read.transport_url()
    has_tls = has_tls_scheme or read.truth("ssl")
    login_method = read.text("rabbit_login_method", _LOGIN_METHODS[0])
    if login_method not in _LOGIN_METHODS:
        problem = f"must be one of {', '.join(_LOGIN_METHODS)}, got {quote_value(login_method)}"
        raise read.build_error(RABBIT, "rabbit_login_method", problem)
    options = BrokerOptions(
        brokers=brokers,
        virtual_host=virtual_host,
        login_method=login_method,
        tls=read.tls() if has_tls else None,
        host=read.text("host", "", section="DEFAULT") or socket.gethostname(),
        control_exchange=read.text("control_exchange", "nova", section="DEFAULT"),
        amqp_durable_queues=read.truth("amqp_durable_queues"),
        amqp_auto_delete=read.truth("amqp_auto_delete"),
        rabbit_ha_queues=read.truth("rabbit_ha_queues"),
        rabbit_quorum_queue=read.truth("rabbit_quorum_queue"),
        rabbit_transient_quorum_queue=read.truth("rabbit_transient_quorum_queue"),
        quorum_limits=QuorumLimits(
            delivery_limit=read.number("rabbit_quorum_delivery_limit", 0),
            max_memory_length=read.number("rabbit_quorum_max_memory_length", 0),
            max_memory_bytes=read.number("rabbit_quorum_max_memory_bytes", 0),
        ),
        rabbit_transient_queues_ttl=read.number("rabbit_transient_queues_ttl", 1800),
        heartbeat_timeout_threshold=read.number("heartbeat_timeout_threshold", 60),
        heartbeat_rate=read.number("heartbeat_rate", 3),
        rabbit_retry_interval=read.number("rabbit_retry_interval", 1, minimum=1),
        rabbit_retry_backoff=read.number("rabbit_retry_backoff", 2),
        rabbit_interval_max=read.number("rabbit_interval_max", 30, minimum=1),
        rpc_response_timeout=read.number("rpc_response_timeout", 60, minimum=1, section="DEFAULT"),
        missing_queue_s=read.number("kombu_missing_consumer_retry_timeout", 60),
    )
    if options.rabbit_ha_queues and options.rabbit_quorum_queue:
        raise read.build_error(RABBIT, "rabbit_ha_queues", "cannot be used with rabbit_quorum_queue")
    return options


class _Reader:
    """Values of a file, or their defaults.

    An option of RabbitMQ in the query of ``transport_url`` has precedence, as in ``rabbit://…/?ssl=true``.
    """

    def __init__(self, ini: Ini, url_section: str) -> None:
        self._ini, self._url_section = ini, url_section
        self._query: dict[str, str] = {}
        url = self.text("transport_url", "rabbit://", section=url_section)
        try:
            self._query = dict(parse_qsl(urlsplit(url).query))
        except ValueError:
            return  # ``transport_url`` reports it.

    def text(self, option: str, default: str, *, section: str = RABBIT) -> str:
        """Return a text."""
        return self._value(section, option, default, convert=str, kind="a text")

    def truth(self, option: str, *, is_true: bool = False) -> bool:
        """Return a truth; ``is_true`` is its default."""
        return self._value(RABBIT, option, is_true, convert=read_truth, kind="true or false")

    def number(self, option: str, default: int, *, minimum: int = 0, section: str = RABBIT) -> int:
        """Return a whole number."""

        def convert(text: str) -> int:
            value = int(text)
            if value < minimum:
                raise ValueError(text)
            return value

        kind = f"a whole number of at least {minimum}"
        return self._value(section, option, default, convert=convert, kind=kind)

    def tls(self) -> Tls:
        """Return the options for TLS."""
        verifies_host = self.truth("ssl_enforce_hostname_verification", is_true=True)
        files = {kind: self.text(f"ssl_{kind}", "") or None for kind in ("ca_file", "cert_file", "key_file")}
        return Tls(verifies_host=verifies_host, **files)

    def transport_url(self) -> tuple[tuple[Broker, ...], str, bool]:
        """Return the brokers, the virtual host, and whether the scheme requires TLS.

        Errors show no part of the URL: with a wrong separator, any part can be one of the password.
        """
        url = self.text("transport_url", "rabbit://", section=self._url_section)
        scheme, separator, _ = url.partition("://")
        if not separator or not scheme.isascii() or scheme.lower() not in SCHEMES:
            problem = "must begin with rabbit://, since Roost supports only RabbitMQ"
            raise self.build_error(self._url_section, "transport_url", problem)
        try:
            parts = urlsplit(url)
            brokers = tuple(_read_broker(text.strip()) for text in parts.netloc.split(",") if text.strip())
        except ValueError:
            problem = "must be rabbit://USER:PASSWORD@HOST:PORT/VHOST; write special characters as %XX"
            raise self.build_error(self._url_section, "transport_url", problem) from None
        virtual_host = unquote(parts.path[1:]) or "/"
        return brokers or (Broker(host="localhost"),), virtual_host, scheme.lower() == "rabbit+ssl"

    def build_error(self, section: str, option: str, problem: str) -> BadSettings:
        """Return the error about an option."""
        line = self._ini.lines.get((section, option))
        where = self._ini.path if line is None else f"{self._ini.path}:{line}"
        return BadSettings(f"{where}: {section}.{option}", problem)

    def _value(self, section: str, option: str, default: T, *, convert: Callable[[str], Any], kind: str) -> T:
        names = (option, *_OLD_NAMES.get(option, ()))
        found = [(section, name, self._read(section, name)) for name in names]
        if section == RABBIT:
            found = [(self._url_section, "transport_url", self._query.get(name)) for name in names] + found
        for place, name, text in found:
            if text is None:
                continue
            try:
                value: T = convert(text.strip())
            except ValueError:
                if place != section:  # Show no part of the URL.
                    raise self.build_error(place, name, f"{option} must be {kind}") from None
                raise self.build_error(place, name, f"must be {kind}, got {quote_value(text)}") from None
            return value
        return default

    def _read(self, section: str, option: str) -> str | None:
        try:
            return self._ini.get(section, option)
        except BadSettings as error:
            raise self.build_error(section, option, error.problem) from None


def _has_effect(text: str) -> bool:
    """Return whether an option is on; a name, as of a method, counts as on."""
    try:
        return read_truth(text)
    except ValueError:
        return True


def _read_broker(text: str) -> Broker:
    """Return a broker from USER:PASSWORD@HOST:PORT.

    Raises:
        ValueError: the text is invalid.
    """
    login, _, address = text.rpartition("@")
    host, port = _split_address(address)
    user, _, password = login.partition(":")
    if not login:
        return Broker(host=host, port=port)
    return Broker(host=host, port=port, user=unquote(user), password=unquote(password))


def _split_address(address: str) -> tuple[str, int]:
    if address.startswith("["):
        host, closing, rest = address[1:].partition("]")
        if not closing or (rest and not rest.startswith(":")):
            raise ValueError(address)
        port = rest[1:]
    else:
        host, _, port = address.partition(":")
    if not host or (port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError(address)
    return host, int(port or _PORT)
