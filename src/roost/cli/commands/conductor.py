"""``roost conductor``: works on operations beside the servers of a PostgreSQL database."""

from pathlib import Path

import click

from roost.cli import options
from roost.cli.serve_options import load_server_config

_LISTEN = "127.0.0.1:0"


@click.command("conductor", short_help="Work on what is asked of instances, beside servers.")
@click.option(
    "--cell",
    "cells",
    multiple=True,
    metavar="NAME",
    help="Whose operations; '' is those without a host; may be repeated.  [all]",
)
@click.option("--listen", metavar="HOST:PORT", help=f"Of /healthz and /metrics; port 0 takes a free one.  [{_LISTEN}]")
@click.option("--database", metavar="URL", help="Of PostgreSQL.  [that of the settings]")
@options.config
@options.data
def conductor(
    *, cells: tuple[str, ...], listen: str | None, database: str | None, config: Path | None, data: Path | None
) -> None:
    """Work on operations on instances, and on the periodic jobs, beside servers on the same PostgreSQL database.

    The first line printed says where /healthz and /metrics are. SIGTERM and SIGINT stop it when the step that is
    begun is committed.
    """
    from roost.api.server.listener import listen_on, url_of
    from roost.app.conductor_process import check_conductor, run_conductor

    server = load_server_config(config=config, data=data, conf=None, database=database, listen=listen or _LISTEN)
    check_conductor(server)
    listener = listen_on("listen", server.settings.placement.listen)
    run_conductor(
        server, listener, cells=cells or None, on_ready=lambda: click.echo(f"listening on {url_of(listener)}")
    )
