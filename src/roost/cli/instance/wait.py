"""Requests on instances, and waiting for their operations."""

from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec

from roost.cli.backend import Api, BackendOptions, open_api
from roost.cli.output.output_options import Output
from roost.cli.resolve_name import find_instance, keep_name
from roost.errors import RoostError, Unavailable

# Seconds of one long poll, without and with a progress bar. Polls repeat until the operation ends.
_WAIT_S = "20"
_WATCH_S = "1"
wait_option = click.option("--wait", "is_waiting", is_flag=True, help="Wait until the operation ends.")


def check_served(backend: BackendOptions, *, is_waiting: bool) -> None:
    """Refuse to wait without a server, since no conductor runs.

    Raises:
        click.UsageError: the options select a database.
    """
    if is_waiting and backend.is_local:
        raise click.UsageError(
            "operations need a server: give --url instead of --config, --data or --database, or do not wait"
        )


def run_action(
    act: str,
    name: str,
    *,
    is_waiting: bool,
    output: Output,
    backend: BackendOptions,
    body: Mapping[str, object] | None = None,
) -> None:
    """Request an act on an instance. Print the accepted operation, or with ``--wait`` its result.

    Args:
        act: the last segment of the API path.
        name: uuid or unique name of the instance.

    Raises:
        click.UsageError: waiting needs a server.
        RoostError: the request was refused, or the operation failed.
    """
    check_served(backend, is_waiting=is_waiting)
    with open_api(backend, is_read_only=False) as api:
        uuid = find_instance(api, name)
        with keep_name(name, uuid):
            accepted = api.request("POST", "instances", uuid, act, body=body)
            print_operation(api, accepted, is_waiting=is_waiting, output=output)


def print_operation(api: Api, accepted: dict[str, Any], *, is_waiting: bool, output: Output) -> None:
    """Print the accepted operation, or with ``--wait`` its result.

    Raises:
        RoostError: the operation failed.
    """
    if not is_waiting:
        output.print_object(accepted)
        return
    from roost.cli.views.operation_view import RESULTS

    operation = wait_for_operation(api, accepted["operation"])
    output.print_document(operation, lambda: RESULTS.to_lines(operation["instances"], "table"))
    if operation["outcome"] == "failed":
        faults = [each["fault"] for each in operation["instances"] if each["fault"]]
        raise RoostError(next(filter(None, [operation["problem"], *faults]), "the operation failed"))


def get_operation(api: Api, uuid: str, *, wait_s: str = "") -> dict[str, Any]:
    """Return an operation. With ``wait_s``, first wait for its next change, at most that many seconds.

    Raises:
        Unavailable: the server does not answer; the message adds that the operation continues.
        KeyboardInterrupt: the user stopped waiting; prints that the operation continues.
    """
    try:
        answer: dict[str, Any] = api.request("GET", "operations", uuid, query={"wait_s": wait_s} if wait_s else None)
    except Unavailable as error:
        raise Unavailable(f"{error}; the operation {uuid} continues when a server is back") from None
    except KeyboardInterrupt:
        click.echo(f"\nroost: the operation {uuid} continues", err=True)
        raise
    return answer


def wait_for_operation(api: Api, uuid: str) -> dict[str, Any]:
    """Wait until an operation ends, and return it. Show progress if it has several instances."""
    answer = get_operation(api, uuid)
    if len(answer["instances"]) > 1:
        return watch_operation(
            api,
            answer,
            title="instances built",
            count_done=lambda operation: sum(each["status"] != "BUILD" for each in operation["instances"]),
        )
    while answer["outcome"] == "open":
        answer = get_operation(api, uuid, wait_s=_WAIT_S)
    return answer


def watch_operation(
    api: Api,
    operation: dict[str, Any],
    *,
    title: str,
    count_done: Callable[[dict[str, Any]], int],
    describe_wait: Callable[[dict[str, Any]], str] = lambda _operation: "",
) -> dict[str, Any]:
    """Wait until an operation on several instances ends, show its progress, and return it.

    Args:
        operation: its current state.
        title: label of the progress bar.
        count_done: counts the finished instances.
        describe_wait: returns what the operation itself waits for, empty: nothing; it is printed if it changes.
    """
    from roost.cli.text.progress import progress_bar

    wait = ""
    with progress_bar(title) as progress:
        while operation["outcome"] == "open":
            if operation["instances"]:
                progress(count_done(operation), len(operation["instances"]))
            before, wait = wait, describe_wait(operation)
            if wait not in {"", before}:
                click.echo(wait, err=True)
            operation = get_operation(api, operation["uuid"], wait_s=_WATCH_S)
    return operation


def parse_flavor(text: str) -> str | dict[str, Any]:
    """Return a flavor for a request body: parsed amounts like ``vcpus=2,memory_mb=2048``, or a name."""
    if "=" not in text:
        return text
    from roost.cli.capacity_request import parse_flavors

    (flavor,) = parse_flavors([text], ())
    body: dict[str, Any] = msgspec.to_builtins(flavor)
    return body
