"""``roost instance``: instances that run on hosts with agents."""

from typing import Any

import click

from roost.cli.backend import Api, BackendOptions, backend_options, json_option, open_api, print_result
from roost.cli.instance import instance_changes, instance_live, instance_moves
from roost.cli.instance.wait import check_served, find_instance, finish, parse_flavor, run_action, wait_option
from roost.errors import BadFile, NotFound
from roost.model.work.operation import STATUSES


@click.group("instance", short_help="Run instances on hosts with agents.")
def instance() -> None:
    """Run instances on hosts with agents.

    INSTANCE is a uuid, or a name that only one has.
    """


@instance.command("create", short_help="Let instances run on hosts that are chosen for them.")
@click.argument("name")
@click.option("--flavor", metavar="FLAVOR", help="A stored flavor, or one like vcpus=2,memory_mb=2048.")
@click.option("--image", metavar="NAME", help="A stored image.")
@click.option("--count", type=click.IntRange(1, 1000), metavar="N", help="How many: all get a host, or none.")
@click.option("--group", metavar="GROUP", help="The server group that they join: its name or uuid.")
@click.option("--zone", metavar="NAME", help="The availability zone that they go to.")
@click.option("--host", metavar="NAME", help="The service that they go to; filters are not asked.")
@click.option("--project", metavar="ID", help="Whose they are.")
@click.option("--user", metavar="ID", help="Who asks.")
@click.option("--request", metavar="FILE", help="The rest of the request, as roost decide reads it.")
@wait_option
@json_option
@backend_options
def create(
    *, name: str, request: str | None, is_waited: bool, is_json: bool, backend: BackendOptions, **fields: Any
) -> None:
    """Let instances run on hosts that are chosen for them; of several the next ones are called NAME-2 and so on.

    With --wait, exit code 1 if one cannot be built.
    """
    check_served(backend, is_waited=is_waited)
    body = {**({} if request is None else _read_request(request)), **_request_body(fields), "name": name}
    if "flavor" not in body:
        raise click.UsageError("say the size of the instance with --flavor, or in the file of --request")
    with open_api(backend, is_read=False) as api:
        answer = api.request("POST", "instances", body=body)
        finish(api, answer, is_waited=is_waited, is_json=is_json)


@instance.command("list", short_help="List instances: where they are, and what is done to them.")
@click.option("--host", metavar="NAME", help="Only those on this service.")
@click.option("--project", metavar="ID", help="Only those of this project.")
@click.option("--name", metavar="NAME", help="Only those of this name.")
@click.option(
    "--status", type=click.Choice(STATUSES), metavar="STATUS", help="Only those in this status, such as DELETED."
)
@json_option
@backend_options
def list_(*, is_json: bool, backend: BackendOptions, **filters: str | None) -> None:
    """List instances with where they are and what is being done to them."""
    from roost.cli.text.instance_text import instances_text

    with open_api(backend, is_read=True) as api:
        instances = api.list_all("instances", **filters)
    print_result(instances, is_json=is_json, lines=lambda: instances_text(instances))


@instance.command("show", short_help="Show an instance: what it is and holds, and its story.")
@click.argument("name", metavar="INSTANCE")
@json_option
@backend_options
def show(*, name: str, is_json: bool, backend: BackendOptions) -> None:
    """Show an instance, what it holds, and how it came to be what it is: its decision, attempts and story."""
    from roost.cli.text.instance_text import instance_text

    with open_api(backend, is_read=True) as api:
        answer = api.request("GET", "instances", find_instance(api, name))
        decision = None if is_json else _find_decision(api, answer["decision"])
    print_result(answer, is_json=is_json, lines=lambda: instance_text(answer, decision))


@instance.command("delete", short_help="End an instance, and give back what it holds.")
@click.argument("name", metavar="INSTANCE")
@click.option("--force", "is_forced", is_flag=True, help="Give back what it holds before its host got rid of it.")
@wait_option
@json_option
@backend_options
def delete(*, name: str, is_forced: bool, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """End an instance: its host gets rid of it, then it gives back what it holds.

    A claim that nobody was asked to run is given back at once.
    """
    check_served(backend, is_waited=is_waited)
    with open_api(backend, is_read=False) as api:
        query = {"force": True} if is_forced else None
        answer = api.request("DELETE", "instances", find_instance(api, name), query=query)
        if answer is not None:
            finish(api, answer, is_waited=is_waited, is_json=is_json)


@instance.command("start")
@click.argument("name", metavar="INSTANCE")
@wait_option
@json_option
@backend_options
def start(*, name: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Start an instance that was stopped."""
    run_action("start", name, is_waited=is_waited, is_json=is_json, backend=backend)


@instance.command("stop", short_help="Stop an instance, which stays on its host.")
@click.argument("name", metavar="INSTANCE")
@wait_option
@json_option
@backend_options
def stop(*, name: str, is_waited: bool, is_json: bool, backend: BackendOptions) -> None:
    """Stop an instance; it stays on its host and keeps what it holds."""
    run_action("stop", name, is_waited=is_waited, is_json=is_json, backend=backend)


def _find_decision(api: Api, uuid: str | None) -> dict[str, Any] | None:
    """Return a decision; None: there is none, or it is no longer kept."""
    try:
        decision: dict[str, Any] | None = None if uuid is None else api.request("GET", "decisions", uuid)
    except NotFound:
        return None
    return decision


def _read_request(path: str) -> dict[str, Any]:
    from roost.offline.read_document import bytes_of, parse_document, shown

    document: Any = parse_document(bytes_of(path), dict, name=shown(path))
    if "name" in document:
        raise BadFile(shown(path), "$.name: the name of the instance is said on the command line")
    return dict(document)


def _request_body(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what options say, as the body of a request has it."""
    flavor = fields["flavor"]
    body = {
        "flavor": None if flavor is None else parse_flavor(flavor),
        "image": fields["image"],
        "count": fields["count"],
        "group": fields["group"],
        "availability_zone": fields["zone"],
        "force_hosts": None if fields["host"] is None else [fields["host"]],
        "project_id": fields["project"],
        "user_id": fields["user"],
    }
    return {name: value for name, value in body.items() if value is not None}


for _command in (*instance_moves.COMMANDS, *instance_live.COMMANDS, *instance_changes.COMMANDS):
    instance.add_command(_command)
