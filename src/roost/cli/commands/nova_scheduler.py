"""``roost nova-scheduler``: serve the queue of nova-scheduler for an existing Nova."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import click
import msgspec

from roost.cli.commands.up import serve_everything
from roost.cli.options import HIDE_NOTES, log_overrides
from roost.cli.output.output_options import Output, output_options
from roost.cli.serve_options import load_server_config, server_options
from roost.cli.views.deployment_view import DEPLOYMENT, print_deployment

_LISTEN = "127.0.0.1:8780"


@click.command("nova-scheduler", short_help="Choose hosts for an existing Nova.")
@server_options(listen=_LISTEN)
@click.option(
    "--placement",
    "remote_url",
    metavar="URL",
    help="URL of the Placement API to use; catalog: find it in Keystone's catalog.  [Roost's own]",
)
@click.option("--shadow", is_flag=True, help="Answer nothing: compare Roost's choices with those of nova-scheduler.")
@click.option(
    "--check",
    HIDE_NOTES,
    is_flag=True,
    is_eager=True,
    help="Report what would go wrong or differ, and end; change nothing.",
)
@output_options(DEPLOYMENT, can_watch=False)
def nova_scheduler(
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
    shadow: bool,
    hides_notes: bool,
    output: Output,
) -> None:
    """Take the place of nova-scheduler: serve its queue on the message broker of nova.conf.

    Hosts, services and aggregates come from Nova's databases, resources from Roost's own Placement or from another one.
    Name the file with --nova-conf. The server also serves all that `roost up` serves.

    With --shadow, nova-scheduler keeps deciding. Roost receives copies of its requests, and logs how its own choices
    differ.

    SIGTERM and SIGINT stop it after the calls in progress.

    With --check, start no server. Look at the settings, the broker, Nova's databases and Placement, and print one line
    for each finding. The options of output are for --check only. End with exit code 8 if a finding is an error.
    """
    placement_options = {
        "listen": listen or _LISTEN,
        "workers": workers,
        "allow_insecure_listen": allow_insecure_listen,
        "allow_plain_http": allow_plain_http,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "tls_ca": ca,
        "remote_url": remote_url,
    }
    if hides_notes:
        _check(config, data, conf=conf, database=database, overrides=placement_options, output=output)
        return
    if output != Output():
        raise click.UsageError("--output, --json, --columns, --sort and --limit need --check")
    read_config = partial(
        load_server_config, config=config, data=data, conf=conf, database=database, **placement_options
    )
    serve_everything(read_config, has_conductor=True, has_nova_scheduler=True, is_shadow=shadow)


def _check(
    config: Path | None,
    data: Path | None,
    *,
    conf: Path | None,
    database: str | None,
    overrides: Mapping[str, object],
    output: Output,
) -> None:
    from roost.app import check_nova_deployment
    from roost.model.settings.log_settings import Log
    from roost.observe import log

    # The findings have the warnings of the readers.
    log.configure(msgspec.convert({"level": "error", **log_overrides()}, Log))
    given = {name: value for name, value in overrides.items() if value is not None}
    found = check_nova_deployment(config, data, os.environ, conf=conf, database=database, overrides=given)
    print_deployment(found, output=output)
