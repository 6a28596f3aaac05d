"""``roost up``: serve the whole product on one port."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from roost.cli.serve_options import announce, load_server_config, server_options, supervise

if TYPE_CHECKING:
    from roost.app import ServerConfig

_LISTEN = "127.0.0.1:8780"


@click.command("up", short_help="Serve everything on one port.")
@server_options(listen=_LISTEN)
@click.option(
    "--placement",
    "remote_url",
    metavar="URL",
    help="URL of another Placement API to use; catalog: find it in Keystone's catalog.",
)
@click.option("--no-conductor", is_flag=True, help="Leave operations to `roost conductor`.")
@click.option("--nova-scheduler", is_flag=True, help="Serve the queue of nova-scheduler, too; needs --nova-conf.")
def up(
    *,
    listen: str | None,
    database: str | None,
    config: Path | None,
    data: Path | None,
    conf: Path | None,
    workers: int | None,
    allow_insecure_listen: bool | None,
    allow_plain_http: bool | None,
    tls_cert: str | None,
    tls_key: str | None,
    ca: str | None,
    remote_url: str | None,
    no_conductor: bool,
    nova_scheduler: bool,
) -> None:
    """Serve Roost's own API at /v1, the Placement API at /placement, and /healthz, /readyz and /metrics.

    With --placement, claim resources at another Placement server, and serve no Placement API here.

    Print the address first. SIGTERM and SIGINT stop the server after the requests in flight. SIGHUP reloads the
    settings; with several workers, it also replaces them one after the other.
    """
    read_config = partial(
        load_server_config,
        config=config,
        data=data,
        conf=conf,
        database=database,
        listen=listen or _LISTEN,
        workers=workers,
        allow_insecure_listen=allow_insecure_listen,
        allow_plain_http=allow_plain_http,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_ca=ca,
        remote_url=remote_url,
    )
    serve_everything(read_config, has_conductor=not no_conductor, has_nova_scheduler=nova_scheduler)


def serve_everything(
    read_config: "Callable[[], ServerConfig]",
    *,
    has_conductor: bool,
    has_nova_scheduler: bool,
    is_shadow: bool = False,
) -> None:
    """Serve the whole product until a signal stops it.

    Args:
        read_config: reads the configuration, now and at SIGHUP.
        has_conductor: whether this server advances operations, too.
        has_nova_scheduler: whether to serve the queue of nova-scheduler, too; else the settings decide.
        is_shadow: whether to only compare choices with those of nova-scheduler; else the settings decide.

    Raises:
        BadSettings: the parts of the configuration contradict each other.
    """
    from roost.api.server.listener import listen_on, url_of
    from roost.app import serve_product
    from roost.app.conductor_process import check_server, disable_conductor
    from roost.app.up import check_nova, enable_nova
    from roost.errors import BadSettings

    def read() -> "ServerConfig":
        server = read_config()
        server = server if has_conductor else disable_conductor(server)
        server = enable_nova(server, is_shadow=is_shadow) if has_nova_scheduler else server
        check_server(server)
        check_nova(server)
        if server.settings.placement.remote_url and server.settings.placement.workers > 1:
            raise BadSettings("placement.workers", "must be 1 with placement.remote_url")
        return server

    server = read()
    listener = listen_on("listen", server.settings.placement.listen)

    def on_ready() -> None:
        announce(f"listening on {url_of(listener, is_tls=bool(server.settings.placement.tls_cert))}")

    if server.settings.placement.workers == 1:
        serve_product(server, listener, on_ready=on_ready)
    else:
        supervise("up", read, listener, on_ready=on_ready)
