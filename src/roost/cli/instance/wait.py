"""What a command asked of an instance, and what became of it."""

from collections.abc import Callable, Mapping
from typing import Any

import click
import msgspec

from roost.cli.backend import Api, Where, asking, told
from roost.cli.text.tables import fields
from roost.errors import BadRequest, NotFound, RoostError, Unavailable
from roost.model.names import uuid_bytes

# A server is asked to wait for so long at once; it is asked again until the operation is over. Of several instances it
# is shown meanwhile how far that is.
_WAIT_S = "20"
_WATCH_S = "1"
wait = click.option("--wait", "is_waited", is_flag=True, help="Come back when it is done, or cannot be.")


def check_served(place: Where, *, is_waited: bool) -> None:
    """Refuse to wait where nobody works.

    Raises:
        click.UsageError: a database is named.
    """
    if is_waited and (place.config or place.data):
        raise click.UsageError("nobody works on a database that is not served: wait with --url, or not at all")


def ask(
    act: str, name: str, *, is_waited: bool, is_json: bool, place: Where, body: Mapping[str, object] | None = None
) -> None:
    """Ask that something is done to an instance, and tell what was accepted, or with ``--wait`` what became of it.

    Args:
        act: as the path of the API has it.
        name: a uuid, or a name that only one instance has.

    Raises:
        click.UsageError: nobody works there.
        RoostError: it was not done.
    """
    check_served(place, is_waited=is_waited)
    with asking(place, is_read=False) as api:
        accepted = api.ask("POST", "instances", uuid_of(api, name), act, body=body)
        end(api, accepted, is_waited=is_waited, is_json=is_json)


def end(api: Api, accepted: dict[str, Any], *, is_waited: bool, is_json: bool) -> None:
    """Tell what was accepted, or with ``--wait`` what became of it.

    Raises:
        RoostError: it was not done.
    """
    if not is_waited:
        told(accepted, is_json=is_json, lines=lambda: fields(accepted))
        return
    from roost.cli.text.instance_text import operation_text

    found = waited(api, accepted["operation"])
    told(found, is_json=is_json, lines=lambda: operation_text(found))
    if found["outcome"] == "failed":
        faults = [each["fault"] for each in found["instances"] if each["fault"]]
        raise RoostError(next(filter(None, [found["problem"], *faults]), "it was not done"))


def shown(api: Api, operation: str, *, wait_s: str = "") -> dict[str, Any]:
    """Return an operation when something has changed, or a while later; at once if no while is said.

    Raises:
        Unavailable: the server is gone; who asked is told that the operation is not.
        KeyboardInterrupt: whoever waits ended that; so for them.
    """
    try:
        found: dict[str, Any] = api.ask("GET", "operations", operation, query={"wait_s": wait_s} if wait_s else None)
    except Unavailable as error:
        raise Unavailable(f"{error}; the operation {operation} goes on when a server is back") from None
    except KeyboardInterrupt:
        click.echo(f"\nroost: the operation {operation} goes on", err=True)
        raise
    return found


def waited(api: Api, operation: str) -> dict[str, Any]:
    """Return an operation when it is over; of several instances it is shown meanwhile how many are built."""
    found = shown(api, operation)
    if len(found["instances"]) > 1:
        return watched(
            api,
            found,
            title="instances built",
            done=lambda now: sum(each["status"] != "BUILD" for each in now["instances"]),
        )
    while found["outcome"] == "open":
        found = shown(api, operation, wait_s=_WAIT_S)
    return found


def watched(api: Api, found: dict[str, Any], *, title: str, done: Callable[[dict[str, Any]], int]) -> dict[str, Any]:
    """Return an operation on several instances when it is over, and show meanwhile how far it is.

    Args:
        found: the operation, as it is now.
        title: says what is counted.
        done: counts it.
    """
    from roost.cli.text.progress import progress_bar

    with progress_bar(title) as progress:
        while found["outcome"] == "open":
            if found["instances"]:
                progress(done(found), len(found["instances"]))
            found = shown(api, found["uuid"], wait_s=_WATCH_S)
    return found


def uuid_of(api: Api, name: str) -> str:
    """Return the uuid of an instance.

    Raises:
        NotFound: nothing is called so.
        BadRequest: several are, or the name is empty.
    """
    if uuid_bytes(name) is not None:
        return name
    found: list[dict[str, Any]] = api.listed("instances", name=name)
    if not found:
        raise NotFound("instance", name)
    if len(found) > 1:
        raise BadRequest(f"{len(found)} instances are called {name!r}; say which by its uuid")
    return str(found[0]["uuid"])


def flavor_said(text: str) -> str | dict[str, Any]:
    """Return a flavor as a body has it: what is written like ``vcpus=2,memory_mb=2048``, or its name."""
    if "=" not in text:
        return text
    from roost.cli.capacity_request import flavors_asked

    (written,) = flavors_asked([text], ())
    found: dict[str, Any] = msgspec.to_builtins(written)
    return found
