"""What a command asked of an instance, and what became of it."""

from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec

from roost.cli.backend import Api, BackendOptions, open_api, print_result
from roost.cli.text.tables import fields
from roost.errors import BadRequest, NotFound, RoostError, Unavailable
from roost.model.names import uuid_bytes

# A server is asked to wait for so long at once; it is asked again until the operation is over. Of several instances it
# is shown meanwhile how far that is.
_WAIT_S = "20"
_WATCH_S = "1"
wait_option = click.option("--wait", "is_waited", is_flag=True, help="Come back when it is done, or cannot be.")


def check_served(backend: BackendOptions, *, is_waited: bool) -> None:
    """Refuse to wait where nobody works.

    Raises:
        click.UsageError: a database is named.
    """
    if is_waited and (backend.config or backend.data):
        raise click.UsageError("nobody works on a database that is not served: wait with --url, or not at all")


def run_action(
    act: str,
    name: str,
    *,
    is_waited: bool,
    is_json: bool,
    backend: BackendOptions,
    body: Mapping[str, object] | None = None,
) -> None:
    """Ask that something is done to an instance, and tell what was accepted, or with ``--wait`` what became of it.

    Args:
        act: as the path of the API has it.
        name: a uuid, or a name that only one instance has.

    Raises:
        click.UsageError: nobody works there.
        RoostError: it was not done.
    """
    check_served(backend, is_waited=is_waited)
    with open_api(backend, is_read=False) as api:
        accepted = api.request("POST", "instances", find_instance(api, name), act, body=body)
        finish(api, accepted, is_waited=is_waited, is_json=is_json)


def finish(api: Api, accepted: dict[str, Any], *, is_waited: bool, is_json: bool) -> None:
    """Tell what was accepted, or with ``--wait`` what became of it.

    Raises:
        RoostError: it was not done.
    """
    if not is_waited:
        print_result(accepted, is_json=is_json, lines=lambda: fields(accepted))
        return
    from roost.cli.text.instance_text import operation_text

    operation = wait_for_operation(api, accepted["operation"])
    print_result(operation, is_json=is_json, lines=lambda: operation_text(operation))
    if operation["outcome"] == "failed":
        faults = [each["fault"] for each in operation["instances"] if each["fault"]]
        raise RoostError(next(filter(None, [operation["problem"], *faults]), "it was not done"))


def get_operation(api: Api, uuid: str, *, wait_s: str = "") -> dict[str, Any]:
    """Return an operation when something has changed, or a while later; at once if no while is said.

    Raises:
        Unavailable: the server is gone; who asked is told that the operation is not.
        KeyboardInterrupt: whoever waits ended that; so for them.
    """
    try:
        answer: dict[str, Any] = api.request("GET", "operations", uuid, query={"wait_s": wait_s} if wait_s else None)
    except Unavailable as error:
        raise Unavailable(f"{error}; the operation {uuid} goes on when a server is back") from None
    except KeyboardInterrupt:
        click.echo(f"\nroost: the operation {uuid} goes on", err=True)
        raise
    return answer


def wait_for_operation(api: Api, uuid: str) -> dict[str, Any]:
    """Return an operation when it is over; of several instances it is shown meanwhile how many are built."""
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
    api: Api, operation: dict[str, Any], *, title: str, count_done: Callable[[dict[str, Any]], int]
) -> dict[str, Any]:
    """Return an operation on several instances when it is over, and show meanwhile how far it is.

    Args:
        found: the operation, as it is now.
        title: says what is counted.
        done: counts it.
    """
    from roost.cli.text.progress import progress_bar

    with progress_bar(title) as progress:
        while operation["outcome"] == "open":
            if operation["instances"]:
                progress(count_done(operation), len(operation["instances"]))
            operation = get_operation(api, operation["uuid"], wait_s=_WATCH_S)
    return operation


def find_instance(api: Api, name: str) -> str:
    """Return the uuid of an instance.

    Raises:
        NotFound: nothing is called so.
        BadRequest: several are, or the name is empty.
    """
    if uuid_bytes(name) is not None:
        return name
    matches: list[dict[str, Any]] = api.list_all("instances", name=name)
    if not matches:
        raise NotFound("instance", name)
    if len(matches) > 1:
        raise BadRequest(f"{len(matches)} instances are called {name!r}; say which by its uuid")
    return str(matches[0]["uuid"])


def parse_flavor(text: str) -> str | dict[str, Any]:
    """Return a flavor as a body has it: what is written like ``vcpus=2,memory_mb=2048``, or its name."""
    if "=" not in text:
        return text
    from roost.cli.capacity_request import parse_flavors

    (flavor,) = parse_flavors([text], ())
    body: dict[str, Any] = msgspec.to_builtins(flavor)
    return body
