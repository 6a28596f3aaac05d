"""One connection, for one thread, to one of several brokers."""

import logging
import random
import select
import socket
import ssl
from typing import Any

import amqp
import msgspec

from roost.nova.rpc.broker_options import Broker, BrokerOptions, Tls

# Frames between two heartbeats, so that many messages do not delay a heartbeat.
_FRAMES_MAX = 256
_WAIT_S_MAX = 1.0
_READ_S = 1.0  # for the rest of a frame
_CLOSE_S = 2.0
_LOGINS = {
    # RabbitMQ offers both by default; an administrator may have removed the first.
    "AMQPLAIN": (amqp.sasl.AMQPLAIN, amqp.sasl.PLAIN),
    "PLAIN": (amqp.sasl.PLAIN,),
}
# Without a handler, Python would write the library's warnings on standard error.
logging.getLogger("amqp").addHandler(logging.NullHandler())


class BrokerGone(Exception):
    """The connection cannot be used any longer; the text is the reason."""


# Errors of the library and of the network that end a connection.
LINK_ERRORS = (BrokerGone, amqp.exceptions.AMQPError, amqp.exceptions.MessageNacked, OSError)


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of operations of a connection, in seconds.

    Args:
        connect_s: of each step of a login.
        operation_s: of a request to the broker, or of a write.
        confirm_s: until the broker confirms a reply.
    """

    connect_s: float = 10.0
    operation_s: float = 20.0
    confirm_s: float = 30.0


class BrokerLink:
    """A connection to one of several brokers.

    One thread opens, uses and closes it; ``wake`` is for all other threads. Each attempt to open it uses the next
    broker.

    Args:
        options: brokers, login and heartbeats.
        name: name of the connection, for the pages of the broker.
        timeouts: limits of operations.
    """

    def __init__(self, options: BrokerOptions, *, name: str, timeouts: Timeouts) -> None:
        self._options = options
        self._name = name
        self._timeouts = timeouts
        # In random order, so that several services do not all use the same broker.
        self._brokers = random.sample(options.brokers, len(options.brokers))
        self._attempts = 0
        self._connection: Any = None
        self._poll: select.poll | None = None
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._waits = select.poll()
        self.is_blocked = False  # the broker has no memory or disk, so it reads nothing from this connection
        self.address = ""

    def open(self) -> Any:
        """Connect to the next broker, and return the connection.

        Raises:
            LINK_ERRORS: the broker cannot be used.
        """
        broker = self._brokers[self._attempts % len(self._brokers)]
        self._attempts += 1
        self.address, self.is_blocked = broker.address, False
        connection = self._connection = self._build(broker)
        connection.connect()
        # Before it publishes, the library would read without waiting, and can lose a half of a frame then. It does so
        # for brokers that announce blocked connections; ``pump`` reads these announcements anyway.
        connection.client_properties["capabilities"] = {}
        connection.sock.settimeout(self._timeouts.operation_s)
        self._poll = select.poll()
        self._poll.register(connection.sock, select.POLLIN)
        self._waits = select.poll()
        self._waits.register(connection.sock, select.POLLIN)
        self._waits.register(self._wake_in, select.POLLIN)
        return connection

    def _build(self, broker: Broker) -> Any:
        options = self._options
        if options.login_method == "EXTERNAL":
            authentication = (amqp.sasl.EXTERNAL(),)
        else:
            authentication = tuple(login(broker.user, broker.password) for login in _LOGINS[options.login_method])
        heartbeat_s = options.heartbeat_timeout_threshold
        settings = {}
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # The library's own limit of one second ends connections on short losses of the network.
            settings[socket.TCP_USER_TIMEOUT] = 1000 * (heartbeat_s or 60)
        return amqp.Connection(
            host=broker.address,
            authentication=authentication,
            virtual_host=options.virtual_host,
            client_properties={"product": "Roost", "connection_name": self._name},
            ssl=False if options.tls is None else _ssl_options(options.tls, broker.host),
            connect_timeout=self._timeouts.connect_s,
            heartbeat=heartbeat_s,
            socket_settings=settings,
            on_blocked=lambda _: self._set_blocked(is_blocked=True),
            on_unblocked=lambda: self._set_blocked(is_blocked=False),
        )

    def _set_blocked(self, *, is_blocked: bool) -> None:
        self.is_blocked = is_blocked

    def pump(self, wait_s: float) -> None:
        """Wait for frames or ``wake``, dispatch all frames, and send a heartbeat if it is due.

        Raises:
            LINK_ERRORS: the connection is gone.
        """
        connection = self._require_connection()
        if not self._is_readable(connection):
            self._wait(wait_s)
        for _ in range(_FRAMES_MAX):
            if not self._is_readable(self._require_connection()):
                break
            try:
                connection.blocking_read(timeout=_READ_S)
            except TimeoutError:
                break  # A part of a frame, which the library keeps, or bytes of TLS alone.
        self._require_connection().heartbeat_tick(rate=self._options.heartbeat_rate or 2)

    def _require_connection(self) -> Any:
        # The library would connect again by itself if a closed connection were used.
        if self._connection is None or not self._connection.connected:
            raise BrokerGone("the broker closed the connection")
        return self._connection

    def _is_readable(self, connection: Any) -> bool:
        assert self._poll is not None
        pending = getattr(connection.sock, "pending", None)  # decrypted bytes, with TLS
        return (pending is not None and pending() > 0) or bool(self._poll.poll(0))

    def _wait(self, wait_s: float) -> None:
        limit_s = _WAIT_S_MAX
        if heartbeat_s := self._connection.heartbeat:
            limit_s = min(limit_s, heartbeat_s / 4)
        self._waits.poll(max(0.0, min(wait_s, limit_s)) * 1000)
        try:
            while self._wake_in.recv(4096):
                pass
        except BlockingIOError:
            pass

    def wake(self) -> None:
        """End the current or the next wait of ``pump``; for any thread."""
        try:
            self._wake_out.send(b"w")
        except OSError:  # Many wakes wait already, or the link has ended.
            return

    def close(self) -> None:
        """Close the connection, with a goodbye if the broker still listens."""
        connection, self._connection = self._connection, None
        self.is_blocked = False
        if connection is None:
            return
        try:
            if connection.connected:
                connection.sock.settimeout(_CLOSE_S)
                connection.close()
        except Exception:  # noqa: BLE001, S110  # The connection ends anyway; the library has many errors for that.
            pass
        finally:
            connection.collect()

    def end(self) -> None:
        """Close the connection for good."""
        self.close()
        self._wake_in.close()
        self._wake_out.close()


def _ssl_options(tls: Tls, host: str) -> dict[str, Any]:
    """Return the library's options for TLS.

    Source:
        oslo.messaging, impl_rabbit.py, _fetch_ssl_params: without a CA file, no certificate is verified.
    """
    options: dict[str, Any] = {"keyfile": tls.key_file, "certfile": tls.cert_file}
    if tls.ca_file is None:
        return {**options, "cert_reqs": ssl.CERT_NONE}
    name = host if tls.verifies_host else None
    return {**options, "ca_certs": tls.ca_file, "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": name}
