"""``roost placement``: a server of the Placement API alone."""

from collections.abc import Mapping

import click

from roost.api.placement.request import Identity


@click.command("placement", short_help="Serve the Placement API.")
@click.option("--listen", default="127.0.0.1:8778", show_default=True, metavar="HOST:PORT", help="Where to listen.")
@click.option("--database", metavar="URL", default="roost.db", help="PostgreSQL URL, or path of a SQLite file.")
def placement(*, listen: str, database: str) -> None:
    """Serve the Placement API, 1.0 to 1.39, at the root path."""
    import socket

    import uvicorn

    from roost.api.asgi import AsgiApplication
    from roost.api.placement.application import Application
    from roost.app import open_placement

    host, _, port = listen.rpartition(":")
    serving = open_placement(database)
    application = Application(identify=_named, allows=_is_admin)
    listener = socket.create_server((host, int(port)))
    click.echo(f"listening on http://{host}:{listener.getsockname()[1]}")
    config = uvicorn.Config(
        AsgiApplication(application, serving), log_level="warning", access_log=False, lifespan="off"
    )
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        serving.stop()


def _named(headers: Mapping[str, str]) -> Identity | None:
    token = headers.get("x-auth-token")
    return Identity(user_id=token, project_id=token, roles=frozenset({token})) if token else None


def _is_admin(_policy: str, identity: Identity, _target: Mapping[str, str]) -> bool:
    return "admin" in identity.roles
