"""The shared options of the server commands, and their evaluation."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

from roost.cli import options

if TYPE_CHECKING:
    from socket import socket

    from roost.app import ServerConfig
    from roost.app.worker_process import Work

Command = TypeVar("Command", bound=Callable[..., Any])


def server_options(*, listen: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of a server.

    Args:
        listen: the default address, as help texts show it.
    """

    def with_options(command: Command) -> Command:
        for option in reversed(
            [
                click.option(
                    "--listen", metavar="HOST:PORT", help=f"Address to listen on; port 0 means any.  [{listen}]"
                ),
                click.option(
                    "--database",
                    metavar="URL",
                    help="URL of PostgreSQL or MariaDB, or path of a SQLite file.  [roost.db in the data folder]",
                ),
                options.config,
                options.data,
                options.conf,
                options.log,
                click.option(
                    "--workers",
                    type=int,
                    metavar="N",
                    help="Number of server processes; more than 1 needs a database server.  [1]",
                ),
                click.option(
                    "--allow-insecure-listen",
                    is_flag=True,
                    default=None,
                    help="Allow noauth2, which trusts every client, on addresses that other machines can reach.",
                ),
                click.option(
                    "--allow-plain-http",
                    is_flag=True,
                    default=None,
                    help="Accept tokens over plain HTTP from other machines.",
                ),
                click.option("--tls-cert", metavar="FILE", help="File of the certificate, PEM; enables TLS."),
                click.option(
                    "--tls-key", metavar="FILE", help="File of the private key, PEM.  [in the certificate file]"
                ),
                click.option(
                    "--ca", metavar="FILE", help="File of CA certificates, PEM; clients must present a certificate."
                ),
            ]
        ):
            command = option(command)
        return command

    return with_options


def load_server_config(
    *, config: Path | None, data: Path | None, conf: Path | None, database: str | None, **placement_options: object
) -> "ServerConfig":
    """Resolve the configuration of a server; print its notes and the warnings of its access policy.

    Args:
        placement_options: settings of section ``placement`` from the command line; None: not given.

    Raises:
        BadSettings: a setting is unknown, wrong or unsupported.
    """
    from roost.api.server.listener import check_listening
    from roost.api.server.tls import tls_context
    from roost.app import placement_policy, resolve_server_config

    overrides = {name: value for name, value in placement_options.items() if value is not None}
    server = resolve_server_config(config, data, os.environ, conf=conf, database=database, overrides=overrides)
    log_settings = replace(server.settings.log, **options.log_overrides())
    server = replace(server, settings=replace(server.settings, log=log_settings))
    check_listening(server.settings.placement)
    tls_context(server.settings.placement)  # Fail before anything starts.
    for note in (*server.notes, *placement_policy(server.settings.placement).warnings):
        click.echo(f"roost: {note}", err=True)
    return server


def announce(*lines: str) -> None:
    """Print the first lines of a server or an agent, and report to systemd that it is ready."""
    from roost.machine import report_ready

    for line in lines:
        click.echo(line)
    report_ready()


def supervise(
    kind: "Work",
    read_config: "Callable[[], ServerConfig]",
    listener: "socket",
    *,
    observer: "socket | None" = None,
    on_ready: Callable[[], None],
) -> None:
    """Run worker processes on one listening socket, and serve their combined health and metrics.

    Args:
        kind: command of the server.
        read_config: reads the configuration, now and at SIGHUP.
        listener: socket of all workers.
        observer: socket of /healthz, /readyz and /metrics, if any.
        on_ready: called once, when all workers are ready.
    """
    import tempfile

    from roost.api.health.probes import Probes
    from roost.api.server.connection_limit import Connections, fit_connections
    from roost.api.server.listener import Server
    from roost.api.server.supervisor import Supervisor
    from roost.app.worker_process import pack, work
    from roost.observe import log
    from roost.observe.metrics_folder import FOLDER_VARIABLE

    config = read_config()
    log.configure(config.settings.log)
    settings = config.settings.placement
    with tempfile.TemporaryDirectory(prefix="roost-metrics-") as folder:
        os.environ[FOLDER_VARIABLE] = folder
        supervisor = Supervisor(
            work,
            lambda: (kind, pack(read_config()), listener),
            count=settings.workers,
            stop_timeout_s=settings.stop_timeout_s,
            on_ready=on_ready,
        )
        servers = []
        if observer is not None:
            connections = Connections(fit_connections(settings.connections_max))
            servers = [
                Server(
                    Probes(supervisor.health, readiness=supervisor.readiness),
                    observer,
                    settings,
                    connections=connections,
                )
            ]
        supervisor.run(*servers)
