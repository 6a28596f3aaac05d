"""What server groups, aggregates, services and flavors are called, as things are now."""

from collections.abc import Iterable

import msgspec

from roost.api.v1.wire.decode_body import field_problem
from roost.engine.columns.state import State
from roost.model.flavor import Flavor
from roost.model.names import uuid_form

# Flavors that decisions were made for have none.
_NO_UUID = "store the one that is meant under that name, or say its size in place of the name"


class StateNames:
    """Names by the columns; see ``roost.scheduler.query.request_lookup.Names``."""

    def __init__(self, state: State) -> None:
        self._state = state

    def group(self, name: str, *, at: str) -> str:
        """Return the uuid of a server group."""
        groups, uuid = self._state.groups_by_uuid, uuid_form(name)
        if uuid in groups:
            return uuid
        named = (each.uuid for each in groups.values() if each.name == name)
        return _require_one(named, kind="server group", name=name, at=at)

    def aggregate(self, name: str, *, at: str) -> str:
        """Return the uuid of an aggregate."""
        aggregates, uuid = self._state.aggregates, uuid_form(name)
        if uuid in aggregates:
            return uuid
        named = (aggregates.name_of(number) for number, each in self._state.aggregate_names.items() if each == name)
        return _require_one(named, kind="aggregate", name=name, at=at)


def canonical_service(state: State, name: str) -> str:
    """Return the name of a service as it was registered, letter case aside; one that has no node is as it is said."""
    hosts = state.hosts
    return next((hosts.names[row] for row in hosts.rows_of_name.get(name.lower(), ())), name)


def find_flavor(name: str, known: Iterable[Flavor], *, at: str) -> Flavor:
    """Return the flavor of a name.

    Raises:
        Problem: 400, there is none, or more than one.
    """
    by_body = {msgspec.json.encode(each): each for each in known if each.name == name}
    body = _require_one((body.decode() for body in by_body), kind="flavor", name=name, at=at, advice=_NO_UUID)
    return by_body[body.encode()]


def _require_one(found: Iterable[str], *, kind: str, name: str, at: str, advice: str = "say which by its uuid") -> str:
    several = list(found)
    if len(several) == 1:
        return several[0]
    if several:
        raise field_problem(at, f"{len(several)} {kind}s are called {name[:70]!r}; {advice}")
    raise field_problem(at, f"there is no {kind} {name[:70]!r}")
