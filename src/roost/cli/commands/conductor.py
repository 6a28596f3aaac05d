"""``roost conductor``: run a conductor alongside the servers that share a database."""

from pathlib import Path

import click

from roost.cli import options
from roost.cli.serve_options import announce, load_server_config

_LISTEN = "127.0.0.1:0"


@click.command("conductor", short_help="Run a conductor beside servers.")
@click.option(
    "--cell",
    "cells",
    multiple=True,
    metavar="NAME",
    help="Cell to work for; '' means operations without a host; repeatable.  [all]",
)
@click.option(
    "--listen", metavar="HOST:PORT", help=f"Address of /healthz, /readyz and /metrics; port 0 means any.  [{_LISTEN}]"
)
@click.option("--database", metavar="URL", help="URL of PostgreSQL or MariaDB.  [from the settings]")
@options.config
@options.data
@options.log
def conductor(
    *, cells: tuple[str, ...], listen: str | None, database: str | None, config: Path | None, data: Path | None
) -> None:
    """Run a conductor: advance operations and run periodic jobs, beside servers of the same database.

    Print the address of /healthz, /readyz and /metrics first. SIGTERM and SIGINT stop it after the commit of the
    current step. SIGHUP reloads the settings.
    """
    from roost.api.server.listener import listen_on, url_of
    from roost.app.conductor_process import check_conductor, run_conductor

    server = load_server_config(config=config, data=data, conf=None, database=database, listen=listen or _LISTEN)
    check_conductor(server)
    listener = listen_on("listen", server.settings.placement.listen)
    run_conductor(server, listener, cells=cells or None, on_ready=lambda: announce(f"listening on {url_of(listener)}"))
