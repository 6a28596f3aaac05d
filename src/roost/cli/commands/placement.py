"""``roost placement``: serve only the Placement API."""

from functools import partial
from pathlib import Path

import click

from roost.cli.serve_options import announce, load_server_config, server_options, supervise


@click.command("placement", short_help="Serve the Placement API.")
@server_options(listen="127.0.0.1:8778")
@click.option("--prefix", metavar="PATH", help="Path prefix of the API, like /placement.  [none]")
@click.option("--metrics-listen", metavar="HOST:PORT", help="Address of /healthz, /readyz and /metrics.  [none]")
def placement(
    *,
    listen: str | None,
    database: str | None,
    config: Path | None,
    data: Path | None,
    conf: Path | None,
    workers: int | None,
    prefix: str | None,
    metrics_listen: str | None,
    allow_insecure_listen: bool | None,
    allow_plain_http: bool | None,
    tls_cert: str | None,
    tls_key: str | None,
    ca: str | None,
) -> None:
    """Serve only the Placement API, in all its microversions.

    Print the address first. SIGTERM and SIGINT stop the server after the requests in flight. With
    several workers, SIGHUP reloads the settings and replaces the workers one after the other.
    """
    from roost.api.server.listener import listen_on, url_of
    from roost.app import serve_placement

    read_config = partial(
        load_server_config,
        config=config,
        data=data,
        conf=conf,
        database=database,
        listen=listen,
        workers=workers,
        prefix=prefix,
        metrics_listen=metrics_listen,
        allow_insecure_listen=allow_insecure_listen,
        allow_plain_http=allow_plain_http,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_ca=ca,
    )
    server = read_config()
    settings = server.settings.placement
    listener = listen_on("listen", settings.listen)
    observer = listen_on("metrics_listen", settings.metrics_listen) if settings.metrics_listen else None

    def on_ready() -> None:
        lines = [f"listening on {url_of(listener, is_tls=bool(settings.tls_cert))}{settings.prefix}"]
        announce(*lines, *([] if observer is None else [f"metrics on {url_of(observer)}/metrics"]))

    if settings.workers == 1:
        serve_placement(server, listener, observer=observer, on_ready=on_ready)
    else:
        supervise("placement", read_config, listener, observer=observer, on_ready=on_ready)
