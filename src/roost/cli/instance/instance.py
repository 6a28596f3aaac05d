"""``roost instance``: create, show, delete, start and stop instances."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from roost.cli.backend import Api, BackendOptions, backend_options, open_api, show_list, show_object
from roost.cli.complete_name import NameType
from roost.cli.instance import instance_changes, instance_live, instance_moves
from roost.cli.instance.request_fields import (
    FLAVOR_OPTION,
    GROUP_OPTION,
    IMAGE_OPTION,
    REQUEST_OPTION,
    read_request_document,
    request_fields,
)
from roost.cli.instance.wait import check_served, print_operation, run_action, wait_option
from roost.cli.output.list_view import Row
from roost.cli.output.output_options import Output, output_options
from roost.cli.resolve_name import check_host, find_instance, keep_name
from roost.cli.text.plain_text import escape_text
from roost.cli.views.decision_view import plan_lines, refusal_line
from roost.cli.views.instance_view import INSTANCES, instance_lines
from roost.cli.views.operation_view import build_lines
from roost.errors import AccessDenied, BadFile, BadRequest, NotFound, NoValidHost
from roost.model.work.operation import STATUSES


@click.group("instance", short_help="Create and manage instances.")
def instance() -> None:
    """Create and manage instances on hosts with agents.

    INSTANCE is a uuid or a unique name.
    """


@instance.command("create", short_help="Create instances.")
@click.argument("name")
@FLAVOR_OPTION
@IMAGE_OPTION
@click.option(
    "--count", type=click.IntRange(1, 1000), metavar="N", help="Number of instances; all get a host, or none.  [1]"
)
@GROUP_OPTION
@click.option("--zone", type=NameType("zone"), metavar="NAME", help="Availability zone of the instances.")
@click.option("--host", type=NameType("host"), metavar="NAME", help="Service to use; filters are skipped.")
@click.option("--project", metavar="ID", help="Project of the instances.")
@click.option("--user", metavar="ID", help="User of the instances.")
@REQUEST_OPTION
@click.option("--strict", "is_strict", is_flag=True, help="Refuse hints without effect and invalid extra specs.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Print the hosts that would be chosen, and create nothing.")
@click.option(
    "--check-index",
    metavar="INDEX",
    help="Check index that a dry run printed; create nothing if the choice has changed since.",
)
@wait_option
@output_options(can_watch=False)
@backend_options
def create(
    *,
    name: str,
    request: str | None,
    is_strict: bool,
    is_dry: bool,
    check_index: str | None,
    is_waiting: bool,
    output: Output,
    backend: BackendOptions,
    **fields: Any,
) -> None:
    """Create instances on hosts that the scheduler chooses. Further instances are called NAME-2, NAME-3 and so on.

    Print the accepted operation, or with --wait the instances. Warn about hints without effect and invalid extra
    specs; with --strict, refuse them. End with exit code 1 if a build fails. With --dry-run,
    print the decision and its check index; end with exit code 6 if no host fits.
    """
    check_served(backend, is_waiting=is_waiting)
    body = {**({} if request is None else _read_request(request)), **request_fields(fields), "name": name}
    if "flavor" not in body:
        raise click.UsageError("the flavor is missing: give --flavor, or put it into the file of --request")
    if is_strict:
        body["strict"] = True
    if is_dry:
        if is_waiting or check_index is not None:
            raise click.UsageError("--dry-run cannot be combined with --wait or --check-index")
        _plan(backend, body, output=output)
        return
    if check_index is not None:
        body["check_index"] = check_index
    with open_api(backend, is_read_only=False) as api:
        _check_places(api, zone=fields["zone"], host=fields["host"])
        answer = api.request("POST", "instances", body=body)
        if is_waiting:  # Otherwise they are part of the output.
            for warning in answer["warnings"]:
                click.echo(f"roost: {escape_text(warning)}", err=True)
            print_operation(api, answer, is_waiting=True, output=output)
        else:
            output.print_document(answer, lambda: build_lines(answer, name))


@instance.command("list", short_help="List instances.")
@click.option("--host", type=NameType("host"), metavar="NAME", help="Only instances on this service.")
@click.option("--project", metavar="ID", help="Only instances of this project.")
@click.option("--name", type=NameType("instance"), metavar="NAME", help="Only instances with this name.")
@click.option(
    "--status", type=click.Choice(STATUSES), metavar="STATUS", help="Only instances in this status, like DELETED."
)
@output_options(INSTANCES)
@backend_options
def list_(*, output: Output, backend: BackendOptions, **filters: str | None) -> None:
    """List instances: name, status, task, host, age and uuid. List deleted ones only with --status DELETED."""

    def fetch(api: Api) -> Iterator[Row]:
        is_empty = True
        for each in api.iterate("instances", **filters):
            is_empty = False
            yield each
        if is_empty and filters["host"]:
            check_host(api, filters["host"])

    show_list(INSTANCES, fetch, backend=backend, output=output)


@instance.command("show", short_help="Show an instance and its story.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@output_options()
@backend_options
def show(*, name: str, output: Output, backend: BackendOptions) -> None:
    """Show an instance: fields, allocations, decision, build attempts, migrations and story."""
    show_object(
        lambda api: api.request("GET", "instances", find_instance(api, name)),
        lambda answer, api: instance_lines(answer, _find_decision(api, answer["decision"])),
        backend=backend,
        output=output,
    )


@instance.command("delete", short_help="Delete an instance.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@click.option(
    "--force",
    "is_forced",
    is_flag=True,
    help="Release the resources of the instance before its host destroys the guest.",
)
@wait_option
@output_options(can_watch=False)
@backend_options
def delete(*, name: str, is_forced: bool, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Delete an instance: its host destroys the guest, then its resources are released.

    With --force, release the resources first. A claim without a guest is released at once.
    """
    check_served(backend, is_waiting=is_waiting)
    with open_api(backend, is_read_only=False) as api:
        query = {"force": True} if is_forced else None
        uuid = find_instance(api, name)
        with keep_name(name, uuid):
            answer = api.request("DELETE", "instances", uuid, query=query)
            if answer is not None:
                print_operation(api, answer, is_waiting=is_waiting, output=output)


@instance.command("start")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@wait_option
@output_options(can_watch=False)
@backend_options
def start(*, name: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Start a stopped instance."""
    run_action("start", name, is_waiting=is_waiting, output=output, backend=backend)


@instance.command("stop", short_help="Stop an instance.")
@click.argument("name", type=NameType("instance"), metavar="INSTANCE")
@wait_option
@output_options(can_watch=False)
@backend_options
def stop(*, name: str, is_waiting: bool, output: Output, backend: BackendOptions) -> None:
    """Stop an instance. It stays on its host and keeps its resources."""
    run_action("stop", name, is_waiting=is_waiting, output=output, backend=backend)


def _plan(backend: BackendOptions, body: dict[str, Any], *, output: Output) -> None:
    """Print the decision that a request would get.

    Raises:
        NoValidHost: it would be refused.
    """
    request = {key: value for key, value in body.items() if key != "name"} | {"dry_run": True}
    with open_api(backend, is_read_only=True) as api:
        answer = api.request("POST", "decisions", body=request)
    output.print_document(answer, lambda: plan_lines(answer, name=body["name"]))
    if answer["outcome"] == "refused":
        raise NoValidHost(refusal_line(answer))


def _find_decision(api: Api, uuid: str | None) -> dict[str, Any] | None:
    """Return a decision; None if it is not stored."""
    try:
        decision: dict[str, Any] | None = None if uuid is None else api.request("GET", "decisions", uuid)
    except NotFound:
        return None
    return decision


def _check_places(api: Api, *, zone: str | None, host: str | None) -> None:
    """Check that a zone and a host exist: otherwise only the build would fail, later.

    Raises:
        NotFound: one of them does not exist.
    """
    with suppress(AccessDenied):  # A client that may not read hosts may still name them.
        if zone is not None and next(api.iterate("hosts", zone=zone, limit="1"), None) is None:
            raise NotFound("", "", message=f"--zone: no host is in a zone {zone!r}")
        if host is not None:
            with suppress(BadRequest):  # The service exists, and has several nodes.
                api.request("GET", "hosts", host)


def _read_request(path: str) -> dict[str, Any]:
    document = read_request_document(path)
    if "name" in document:
        raise BadFile(path, "$.name: the name of the instance belongs on the command line")
    return document


for _command in (*instance_moves.COMMANDS, *instance_live.COMMANDS, *instance_changes.COMMANDS):
    instance.add_command(_command)
