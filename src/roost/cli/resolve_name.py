"""Objects by the names that users give."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from roost.cli.backend import Api
from roost.errors import AccessDenied, BadRequest, NotFound, RoostError
from roost.model.names import uuid_bytes, uuid_form, uuid_range

# Names of the newest decision, and the query for it.
_NEWEST: Mapping[str, dict[str, str | bool]] = {"last": {}, "last-refused": {"refused": True}}
_NO_NEWEST = {"last": "no decision is stored", "last-refused": "no refusal is stored"}
# Number of candidates in a message.
_SHOWN_MAX = 5
# Shorter beginnings of uuids are probably mistyped names.
_PREFIX_MIN = 4
_DECISION_HINT = (
    f"name a decision by its uuid or at least {_PREFIX_MIN} of its first digits, or name an instance; "
    "`roost decision list` shows both"
)


def find_match(
    matches: Sequence[dict[str, Any]], name: str, *, kind: str, describe: Callable[[dict[str, Any]], str]
) -> dict[str, Any] | None:
    """Return the only match of a name; None: nothing has the name.

    Args:
        kind: of the objects, in the singular.
        describe: describes a candidate in a few words, after its uuid.

    Raises:
        BadRequest: several objects have the name; the message lists them.
    """
    if len(matches) > 1:
        candidates = [f"{each['uuid']} ({describe(each)})" for each in matches[:_SHOWN_MAX]]
        more = len(matches) - len(candidates)
        listed = ", ".join(candidates) + (f" and {more:,} more" if more > 0 else "")
        raise BadRequest(f"{len(matches):,} {kind}s are called {name!r}; use a uuid: {listed}")
    return matches[0] if matches else None


def find_aggregate(api: Api, name: str) -> dict[str, Any]:
    """Return an aggregate by name or uuid.

    Raises:
        NotFound: no aggregate has it.
        BadRequest: several aggregates have the name.
    """
    named = api.list_all("aggregates", name=name)
    match = find_match(named, name, kind="aggregate", describe=lambda each: f"{len(each['hosts'])} hosts")
    if match is not None:
        return match
    try:
        answer: dict[str, Any] = api.request("GET", "aggregates", name)
    except NotFound:
        raise NotFound("aggregate", name) from None
    return answer


def find_group(api: Api, name: str) -> dict[str, Any]:
    """Return a server group by name or uuid, with its members.

    Raises:
        NotFound: no server group has it.
        BadRequest: several server groups have the name.
    """
    named = api.list_all("groups", name=name)
    match = find_match(named, name, kind="server group", describe=lambda each: str(each["policy"]))
    answer: dict[str, Any] = api.request("GET", "groups", name if match is None else match["uuid"])
    return answer


def find_instance(api: Api, name: str, *, with_deleted: bool = False) -> str:
    """Return the uuid of an instance.

    Args:
        with_deleted: whether a deleted instance counts if no other one has the name.

    Raises:
        NotFound: no instance has the name.
        BadRequest: several instances have the name, or the name is empty.
    """
    if uuid_bytes(name) is not None:
        return uuid_form(name)
    instances = _instances_called(api, name)
    if not instances and with_deleted:
        instances = _instances_called(api, name, status="DELETED")
    match = find_match(
        instances, name, kind="instance", describe=lambda each: f"{each['status']} on {each['host'] or 'no host'}"
    )
    if match is None:
        raise NotFound("instance", name)
    return str(match["uuid"])


def _instances_called(api: Api, name: str, **filters: str) -> list[dict[str, Any]]:
    # A name with "*" at its end is a pattern in a list, but not in a command.
    return [each for each in api.list_all("instances", name=name, **filters) if each["name"] == name]


def check_zone(api: Api, zone: str) -> None:
    """Check that an availability zone exists.

    Raises:
        NotFound: it does not.
    """
    names = {each["name"] for each in api.iterate("zones")}
    if zone not in names:
        close = difflib.get_close_matches(zone, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "; `roost zone list` shows the zones"
        raise NotFound("zone", zone, message=f"no such zone: {zone}{hint}")


def check_host(api: Api, host: str) -> None:
    """Check the name of a service. Without the right to list hosts, accept every name.

    Raises:
        NotFound: no service has it.
    """
    with suppress(AccessDenied):
        if not any(each["host"].lower() == host.lower() for each in api.iterate("hosts", name=host)):
            raise NotFound("host", host)


@contextmanager
def suggest_aggregate(api: Api, host: str) -> Iterator[None]:
    """In the error about an unknown host, suggest the aggregate of this name."""
    try:
        yield
    except NotFound as error:
        if not api.list_all("aggregates", name=host):
            raise
        raise NotFound("", "", message=f"{error}; {host} is an aggregate: use --aggregate {host}") from None


def iterate_in_zone(api: Api, name: str, *, zone: str | None, **query: str | bool | None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, in a zone if one is given.

    Raises:
        NotFound: no object is in the zone, because it does not exist.
    """
    is_empty = True
    for each in api.iterate(name, zone=zone, **query):
        is_empty = False
        yield each
    if is_empty and zone:
        check_zone(api, zone)


@contextmanager
def keep_name(name: str, uuid: str) -> Iterator[None]:
    """In errors, name an object as the user did, instead of by its uuid."""
    try:
        yield
    except RoostError as error:
        error.args = (str(error).replace(uuid, name),)
        raise


def find_decision(api: Api, name: str) -> str:
    """Return the uuid of a decision.

    Args:
        name: ``last``, ``last-refused``, the uuid of a decision or its beginning, or an instance, which means its
            newest decision.

    Raises:
        NotFound: no decision and no instance has the name.
        BadRequest: several have it, or the name is empty.
    """
    if name in _NEWEST:
        found = _decisions(api, **_NEWEST[name])
    elif uuid_bytes(name) is not None:
        uuid = uuid_form(name)
        found = _decisions(api, uuid=uuid) or _decisions(api, instance=uuid)
    else:
        try:
            found = _decisions(api, instance=find_instance(api, name, with_deleted=True))
        except NotFound:
            found = _decisions_of_prefix(api, name)
    if not found and name in _NEWEST:
        raise NotFound("decision", name, message=_NO_NEWEST[name])
    if not found:
        hint = f"no such decision or instance: {name}; {_DECISION_HINT}" if _is_fragment(name) else None
        raise NotFound("decision or instance", name, message=hint)
    return str(found[0]["uuid"])


def _is_fragment(name: str) -> bool:
    """Return whether a name is a number, or too short for the beginning of a uuid."""
    return name.isdecimal() or (len(name) < _PREFIX_MIN and uuid_range(name) is not None)


def _decisions_of_prefix(api: Api, name: str) -> list[dict[str, Any]]:
    if len(name) < _PREFIX_MIN or uuid_range(name) is None:
        return []
    # Two processes may have stored a decision under one uuid.
    found = list({each["uuid"]: each for each in _decisions(api, uuid=name, limit=str(_SHOWN_MAX + 1))}.values())
    if len(found) > 1:
        listed = ", ".join(each["uuid"] for each in found[:_SHOWN_MAX])
        more = " and more" if len(found) > _SHOWN_MAX else ""
        raise BadRequest(f"several decisions begin with {name!r}: {listed}{more}")
    return found


def _decisions(api: Api, **query: str | bool) -> list[dict[str, Any]]:
    page = api.request("GET", "decisions", query={"limit": "1", **query})
    decisions: list[dict[str, Any]] = page["decisions"]
    return decisions
