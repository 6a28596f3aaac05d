"""What the commands that serve have in common: options, and what they do with them."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from roost.cli import options

if TYPE_CHECKING:
    from socket import socket

    from roost.api.server.supervisor import Parent
    from roost.app import ServerConfig

Command = TypeVar("Command", bound=Callable[..., Any])


class Serve(Protocol):
    """What serves, as one process or as one of several; a function that other processes can import, too."""

    def __call__(
        self,
        config: "ServerConfig",
        listener: "socket",
        *,
        parent: "Parent | None" = None,
        on_ready: Callable[[], None] = ...,
    ) -> None:
        """Serve until a signal says stop."""


def server_options(*, listen: str) -> Callable[[Command], Command]:
    """Return the options of a server: where, on which data, how many processes.

    Args:
        listen: where it listens if nobody says otherwise.
    """

    def with_options(command: Command) -> Command:
        for option in reversed(
            [
                click.option(
                    "--listen", metavar="HOST:PORT", help=f"Where to listen; port 0 takes a free one.  [{listen}]"
                ),
                click.option(
                    "--database",
                    metavar="URL",
                    help="PostgreSQL URL, or path of a SQLite file.  [roost.db in the data]",
                ),
                options.config,
                options.data,
                options.conf,
                click.option(
                    "--workers", type=int, metavar="N", help="Processes that answer; several only on PostgreSQL.  [1]"
                ),
                click.option(
                    "--allow-insecure-listen",
                    is_flag=True,
                    default=None,
                    help="Believe everybody (noauth2) on addresses that other machines reach, too.",
                ),
                click.option(
                    "--allow-plain-http",
                    is_flag=True,
                    default=None,
                    help="Let tokens come over plain HTTP from other machines.",
                ),
                click.option("--tls-cert", metavar="FILE", help="Certificate, PEM; connections are made by TLS then."),
                click.option("--tls-key", metavar="FILE", help="Its private key, PEM.  [in the same file]"),
                click.option("--ca", metavar="FILE", help="CAs, PEM, one of which must vouch for every client."),
            ]
        ):
            command = option(command)
        return command

    return with_options


def load_server_config(
    *, config: Path | None, data: Path | None, conf: Path | None, database: str | None, **options_given: object
) -> "ServerConfig":
    """Return what is to be served, and say on standard error what has no effect.

    Args:
        said: what the command line says of settings of section ``placement``; None: nothing.

    Raises:
        BadSettings: a setting is unknown or wrong, or cannot be honoured.
    """
    from roost.api.server.listener import check_listening
    from roost.api.server.tls import tls_of
    from roost.app import placement_policy, resolve_server_config

    overrides = {name: value for name, value in options_given.items() if value is not None}
    server = resolve_server_config(config, data, os.environ, conf=conf, database=database, overrides=overrides)
    check_listening(server.settings.placement)
    tls_of(server.settings.placement)  # Wrong files are told before anything begins.
    for note in (*server.notes, *placement_policy(server.settings.placement).warnings):
        click.echo(f"roost: {note}", err=True)
    return server


def supervise(
    serve: Serve,
    config: "ServerConfig",
    listener: "socket",
    *,
    observer: "socket | None" = None,
    on_ready: Callable[[], None],
) -> None:
    """Let workers share the listening socket, and answer for all of them where they are watched."""
    import tempfile

    from roost.api.probes import Observing
    from roost.api.server.connection_limit import Connections, connections_within
    from roost.api.server.listener import Server
    from roost.api.server.supervisor import Supervisor
    from roost.observe import metrics

    settings = config.settings.placement
    with tempfile.TemporaryDirectory(prefix="roost-metrics-") as folder:
        os.environ[metrics.FOLDER_VARIABLE] = folder
        supervisor = Supervisor(
            serve,
            (config, listener),
            count=settings.workers,
            stop_timeout_s=settings.stop_timeout_s,
            on_ready=on_ready,
        )
        servers = []
        if observer is not None:
            connections = Connections(connections_within(settings.connections_max))
            servers = [Server(Observing(supervisor.health), observer, settings, connections=connections)]
        supervisor.run(*servers)
