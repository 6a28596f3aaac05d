"""``roost agent``: run the agent of a host, and show the agents of a server."""

import os
from collections.abc import Callable
from pathlib import Path

import click
from msgspec.structs import replace

from roost.cli.backend import BackendOptions, backend_options, open_api, show_list, show_object
from roost.cli.complete_name import NameType
from roost.cli.connection.token_source import token_options
from roost.cli.options import FOLDER, PATH, config, log, log_overrides
from roost.cli.output.list_view import Column, ListView, field, time_field
from roost.cli.output.output_options import Output, output_options
from roost.cli.output.sections import field_lines
from roost.cli.text.plain_text import format_time
from roost.errors import Conflict

_AGENTS = ListView(
    nouns="agents",
    order="host",
    columns=(
        field("host"),
        Column(name="state", value=lambda row: f"{row['state']}, {'up' if row['up'] else 'down'}", kind="state"),
        time_field("heard", head="last contact"),
        field("driver"),
        field("cell"),
        field("nodes", kind="prose"),
        field("software", shown="wide"),
        time_field("registered", shown="wide"),
        field("disabled", shown="wide"),
    ),
)


@click.group("agent", invoke_without_command=True, short_help="Run the agent of a host, or show agents.")
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="URL",
    help="URL of the server, as `roost up` prints it; repeatable, for servers on one database.  [from the settings]",
)
@click.option("--driver", metavar="NAME", help="Driver that runs guests, such as libvirt.  [required]")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="Option of the driver; repeatable.")
@click.option("--host", metavar="NAME", help="Name of the service.  [name of this machine]")
@click.option("--cell", default="", metavar="NAME", help="Cell of the host.  [none]")
@click.option(
    "--state-dir",
    type=PATH,
    metavar="DIR",
    help="Folder of the journal.  [agents/ in the data folder; none with --fleet]",
)
@click.option("--fleet", type=click.IntRange(1, 10_000), metavar="N", help="Run N agents, for hosts NAME-1 to NAME-N.")
@token_options(has_reader=True)
@click.option(
    "--provider-config",
    "provider_config",
    type=FOLDER,
    metavar="DIR",
    help="Folder of provider config files.  [from the settings]",
)
@config
@log
@click.pass_context
def agent(
    context: click.Context,
    *,
    servers: tuple[str, ...],
    driver: str | None,
    options: tuple[str, ...],
    host: str | None,
    cell: str,
    state_dir: Path | None,
    fleet: int | None,
    token: str,
    read_again: Callable[[], str] | None = None,
    provider_config: Path | None,
    config: Path | None,
) -> None:
    """Run the agent of a host: report its inventory, and execute the orders of the server.

    Print one line at the start, then log to standard error. SIGTERM and SIGINT stop the agent after its
    current work; a second signal stops it at once. Guests keep running.
    """
    if context.invoked_subcommand is not None:
        return
    if driver is None:
        raise click.UsageError("--driver is required to run an agent", ctx=context)
    from socket import gethostname

    from roost.app import settings_of
    from roost.app.agents.agent_process import AgentOptions, run_agents
    from roost.cli.serve_options import announce

    settings = settings_of(config, os.environ)
    servers = servers or settings.agent.servers
    if not servers:
        raise click.UsageError(
            "name the server of the agent with --server, or in the setting agent.servers", ctx=context
        )
    name = gethostname() if host is None else host
    hosts = (name,) if fleet is None else tuple(f"{name}-{number}" for number in range(1, fleet + 1))
    agent_options = AgentOptions(
        servers=servers,
        token=token,
        driver=driver,
        options=dict(map(_parse_option, options)),
        hosts=hosts,
        cell=cell,
        state=_state_folder(state_dir, is_fleet=fleet is not None),
        settings=settings.agent,
        is_packing=settings.compute.packing_host_numa_cells_allocation_strategy,
        log=replace(settings.log, **log_overrides()),
    )
    if provider_config is not None:
        agent_options = replace(
            agent_options, settings=replace(agent_options.settings, provider_config_location=str(provider_config))
        )
    title = f"agent of {name}" if fleet is None else f"{fleet} agents of {hosts[0]} to {hosts[-1]}"
    run_agents(agent_options, read_token=read_again, on_ready=lambda: announce(f"{title} for {', '.join(servers)}"))


def _parse_option(text: str) -> tuple[str, str]:
    key, is_set, value = text.partition("=")
    if not key or not is_set:
        raise click.BadParameter(f"must be KEY=VALUE, got {text!r}", param_hint="--option")
    return key, value


def _state_folder(folder: Path | None, *, is_fleet: bool) -> str | None:
    if folder is not None or is_fleet:
        return None if folder is None else str(folder)
    from os import environ, geteuid

    from roost.settings import data_folder

    return str(data_folder(None, environ, is_root=geteuid() == 0) / "agents")


@agent.command("list")
@output_options(_AGENTS)
@backend_options
def list_(*, output: Output, backend: BackendOptions) -> None:
    """List agents: state, last contact, driver, cell and nodes."""
    show_list(_AGENTS, lambda api: api.iterate("agents"), backend=backend, output=output)


@agent.command("show")
@click.argument("name", type=NameType("agent"), metavar="HOST")
@output_options()
@backend_options
def show(*, name: str, output: Output, backend: BackendOptions) -> None:
    """Show the agent of a host. HOST is the name of its service."""
    show_object(lambda api: api.request("GET", "agents", name), backend=backend, output=output)


@agent.command("adopt", short_help="Create a journal for an agent that lost its own.")
@click.argument("name", type=NameType("agent"), metavar="HOST")
@click.option("--state-dir", type=PATH, metavar="DIR", help="Folder of the journal.  [agents/ in the data folder]")
@output_options(can_watch=False)
@backend_options
def adopt(*, name: str, state_dir: Path | None, output: Output, backend: BackendOptions) -> None:
    """Create a new journal for an agent that lost its journal, and take the nodes from the server.

    Run this command on the host of the agent, before you start the agent. HOST is the name of the service. The server
    must report the agent as gone. The command prints the path of the journal and the nodes.
    """
    from roost.app.agents.adopt_host import adopt as write_journal
    from roost.app.agents.agent_process import journal_path

    with open_api(backend, is_read_only=True) as api:
        answer = api.request("GET", "agents", name)
        if answer["state"] != "gone":
            raise Conflict(
                f"the agent of {answer['host']} is running, last contact {format_time(answer['heard_at_s'])}: "
                "stop it, and wait until `roost agent list` shows it as gone"
            )
        if not answer["nodes"]:
            raise Conflict(f"the agent of {answer['host']} has reported no node: start it without a journal")
        nodes = {node: api.request("GET", "hosts", node)["uuid"] for node in answer["nodes"]}
    path = journal_path(str(_state_folder(state_dir, is_fleet=False)), name)
    write_journal(path, nodes)
    result = {"journal": str(path), "nodes": nodes}
    output.print_document(result, lambda: field_lines({"journal": str(path), **nodes}, has_labels=False))
