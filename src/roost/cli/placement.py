"""``roost placement``: a server of the Placement API alone."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roost.cli import options

if TYPE_CHECKING:
    from socket import socket

    from roost.api.supervisor import Parent
    from roost.app import Served


@click.command("placement", short_help="Serve the Placement API.")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.  [127.0.0.1:8778]")
@click.option("--database", metavar="URL", help="PostgreSQL URL, or path of a SQLite file.  [roost.db in the data]")
@options.config
@options.data
@options.conf
@click.option("--workers", type=int, metavar="N", help="Processes that answer; several only on PostgreSQL.  [1]")
@click.option("--prefix", metavar="PATH", help="Path below which the API is found, such as /placement.")
@click.option("--metrics-listen", metavar="HOST:PORT", help="Where /healthz and /metrics are asked.  [nowhere]")
@click.option(
    "--allow-insecure-listen", is_flag=True, default=None,
    help="Believe everybody (noauth2) on addresses that other machines reach, too.",
)  # fmt: skip
def placement(
    *, listen: str | None, database: str | None, config: Path | None, data: Path | None, conf: Path | None,
    workers: int | None, prefix: str | None, metrics_listen: str | None, allow_insecure_listen: bool | None,
) -> None:  # fmt: skip
    """Serve the Placement API, 1.0 to 1.39.

    The first line printed says where. SIGTERM and SIGINT stop it once all that was asked is answered.
    """
    from roost.api.server import check_listening, listen_on, url_of
    from roost.app import placement_policy, placement_served

    said = {
        "listen": listen, "workers": workers, "prefix": prefix, "metrics_listen": metrics_listen,
        "allow_insecure_listen": allow_insecure_listen,
    }  # fmt: skip
    given = {name: value for name, value in said.items() if value is not None}
    served = placement_served(config, data, os.environ, conf=conf, database=database, given=given)
    settings = served.settings.placement
    check_listening(settings)
    for note in (*served.notes, *placement_policy(settings).warnings):
        click.echo(f"roost: {note}", err=True)
    listener = listen_on("listen", settings.listen)
    observer = listen_on("metrics_listen", settings.metrics_listen) if settings.metrics_listen else None

    def on_ready() -> None:
        click.echo(f"listening on {url_of(listener)}{settings.prefix}")
        if observer is not None:
            click.echo(f"metrics on {url_of(observer)}/metrics")

    if settings.workers == 1:
        from roost.app import serve_placement

        serve_placement(served, listener, observer=observer, on_ready=on_ready)
    else:
        _supervise(served, listener, observer, on_ready=on_ready)


def _supervise(
    served: "Served", listener: "socket", observer: "socket | None", *, on_ready: Callable[[], None]
) -> None:
    """Let workers share the listening socket, and answer for all of them where they are watched."""
    import tempfile

    from roost.api.observing import Observing
    from roost.api.server import Server
    from roost.api.supervisor import Supervisor
    from roost.observe import metrics

    settings = served.settings.placement
    with tempfile.TemporaryDirectory(prefix="roost-metrics-") as folder:
        os.environ[metrics.FOLDER_VARIABLE] = folder
        supervisor = Supervisor(
            _work, (served, listener), count=settings.workers, stop_timeout_s=settings.stop_timeout_s,
            on_ready=on_ready,
        )  # fmt: skip
        servers = [] if observer is None else [Server(Observing(supervisor.health), observer, settings)]
        supervisor.run(*servers)


def _work(served: "Served", listener: "socket", *, parent: "Parent") -> None:
    """Serve as one of several processes."""
    from roost.app import serve_placement

    serve_placement(served, listener, parent=parent)
