"""Listening sockets, and a server that stops without losing requests."""

import asyncio
import errno
import math
import os
import signal
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
import uvloop

from roost.api.server.connection import Connection
from roost.api.server.connection_limit import Connections
from roost.api.server.free_memory import keep_pages
from roost.errors import BadSettings, RoostError
from roost.model.settings.placement_settings import Placement as Settings

_BACKLOG = 2048
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# The exit code of a program that a signal ended is this base plus the number of the signal.
EXIT_CODE_BASE = 128
# Seconds until the serving thread yields the interpreter to the event loop. With the default of 5 ms, short answers
# wait behind long ones: the 99th percentile of their latency was three times as high.
_SWITCH_INTERVAL_S = 0.0005


def address_of(setting: str, text: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``; an IPv6 address has brackets.

    Raises:
        BadSettings: the text has another form.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise BadSettings(f"placement.{setting}", f"must be HOST:PORT, got {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def listen_on(setting: str, text: str) -> socket.socket:
    """Open a listening socket.

    Raises:
        BadSettings: the address is malformed.
        RoostError: the address is not available.
    """
    host, port = address_of(setting, text)
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise RoostError(f"cannot listen on {text}: another process uses this address") from None
        raise RoostError(f"cannot listen on {text}: {error.strerror or error}") from None


def url_of(listener: socket.socket, *, is_tls: bool = False) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if is_tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def check_listening(settings: Settings) -> None:
    """Refuse to expose noauth2, or tokens without TLS, to other machines.

    Raises:
        BadSettings: the server would be exposed; the message names a remedy.
    """
    host, _ = address_of("listen", settings.listen)
    if _is_loopback(host):
        return
    if settings.auth_strategy != "noauth2" and not settings.tls_cert and not settings.allow_plain_http:
        raise BadSettings(
            "placement.listen",
            f"{settings.listen} is reachable from other machines, and tokens would travel unencrypted: give --tls-cert "
            "and --tls-key, or --allow-plain-http",
        )
    if settings.auth_strategy == "noauth2" and not settings.allow_insecure_listen:
        raise BadSettings(
            "placement.listen",
            f"{settings.listen} is reachable from other machines, and noauth2 authenticates no client: choose another "
            "placement.auth_strategy, or give --allow-insecure-listen",
        )


def _is_loopback(host: str) -> bool:
    try:
        addresses = {str(each[4][0]) for each in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return all(address == "::1" or address.startswith("127.") for address in addresses)


class Server(uvicorn.Server):
    """An ASGI application on a listening socket.

    Args:
        application: the ASGI application.
        listener: the socket.
        settings: limits and timeouts.
        connections: counter of the process; None: a new counter, for the only server of a process.
        tls: TLS context; None: plain HTTP.
    """

    def __init__(
        self,
        application: Any,
        listener: socket.socket,
        settings: Settings,
        *,
        connections: Connections | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._listener, self._handshake_timeout_s = listener, settings.header_timeout_s
        counter = connections or Connections(settings.connections_max)
        config = uvicorn.Config(
            application,
            http=Connection.with_limits(settings, counter),
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            log_level="critical",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=math.ceil(settings.keep_alive_s),
            timeout_graceful_shutdown=math.ceil(settings.stop_timeout_s),
        )
        config.load()
        config.ssl = tls  # Our own context, not one by uvicorn: ``tls_context`` has reported errors already.
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to ``run``."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen like uvicorn, with a timeout for the TLS handshake."""
        await self.lifespan.startup()
        config, loop = self.config, asyncio.get_running_loop()

        def connection() -> asyncio.Protocol:
            kind: Any = config.http_protocol_class
            protocol: asyncio.Protocol = kind(
                config=config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return protocol

        timeout_s = None if config.ssl is None else self._handshake_timeout_s
        self.servers = [
            await loop.create_server(
                connection, sock=each, ssl=config.ssl, backlog=config.backlog, ssl_handshake_timeout=timeout_s
            )
            for each in sockets or ()
        ]
        self.started = True

    async def answer(self) -> None:
        """Serve until ``stop``."""
        await self.serve(sockets=[self._listener])

    def stop(self) -> None:
        """Refuse new connections, and end after all answers."""
        self.should_exit = True


def run(
    *servers: Server,
    on_second: Callable[[], Awaitable[None]],
    parent: int | None = None,
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal; a second signal ends the process at once.

    Args:
        servers: they share one event loop.
        on_second: called at once and then each second; its errors end the servers.
        parent: end of a pipe that becomes readable when the parent process stops this one, or has ended.
        on_stop: called on the loop when the servers begin to stop.
    """
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    keep_pages()
    uvloop.run(_run(servers, on_second, parent, on_stop=on_stop))


async def _run(
    servers: Sequence[Server],
    on_second: Callable[[], Awaitable[None]],
    parent: int | None,
    *,
    on_stop: Callable[[], None],
) -> None:
    loop = asyncio.get_running_loop()
    signals: list[int] = []

    def end() -> None:
        for server in servers:
            server.stop()
        on_stop()

    def stop(number: int) -> None:
        if signals:
            os._exit(EXIT_CODE_BASE + number)
        signals.append(number)
        end()

    def stop_orphan() -> None:
        assert parent is not None
        loop.remove_reader(parent)
        if not signals:  # A terminal sends its signals to parent and child.
            stop(signal.SIGTERM)

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop, number)
    if parent is not None:
        loop.add_reader(parent, stop_orphan)
    watching = loop.create_task(_repeat(on_second))
    answering = asyncio.gather(*(server.answer() for server in servers))
    await asyncio.wait((watching, answering), return_when=asyncio.FIRST_COMPLETED)
    if watching.done() and not signals:
        end()
    await answering
    if watching.done():
        watching.result()
    watching.cancel()


async def _repeat(act: Callable[[], Awaitable[None]]) -> None:
    while True:
        await act()
        await asyncio.sleep(1)
