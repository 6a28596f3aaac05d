"""Lookup of server groups, aggregates, services and flavors by name, in the current state."""

from collections.abc import Iterable

import msgspec

from roost.api.v1.wire.decode_body import field_problem, missing_problem
from roost.engine.columns.state import State
from roost.model.flavor import Flavor
from roost.model.names import uuid_form

# Advice if several flavors have the name: flavors have no uuid.
_NO_UUID = "store a flavor under that name, or give the flavor in place of its name"


class StateNames:
    """Lookup by name in the columns; see ``roost.scheduler.query.request_lookup.Names``."""

    def __init__(self, state: State, *, earlier_group: str | None = None) -> None:
        """Create a lookup.

        Args:
            state: the columns.
            earlier_group: the uuid of a server group that is found even if it was deleted.
        """
        self._state = state
        self._earlier_group = earlier_group

    def group(self, name: str, *, at: str) -> str:
        """Return the uuid of a server group."""
        groups, uuid = self._state.groups_by_uuid, uuid_form(name)
        if uuid in groups or uuid == self._earlier_group:
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
    """Return a service name in its registered spelling; an unknown name stays unchanged."""
    hosts = state.hosts
    return next((hosts.names[row] for row in hosts.rows_of_name.get(name.lower(), ())), name)


def find_flavor(name: str, flavors: Iterable[Flavor], *, at: str) -> Flavor:
    """Return the flavor with a name.

    Raises:
        Problem: 400, no flavor or several flavors have the name.
    """
    by_body = {msgspec.json.encode(each): each for each in flavors if each.name == name}
    body = _require_one((body.decode() for body in by_body), kind="flavor", name=name, at=at, advice=_NO_UUID)
    return by_body[body.encode()]


def _require_one(matches: Iterable[str], *, kind: str, name: str, at: str, advice: str = "give its uuid") -> str:
    several = list(matches)
    if len(several) == 1:
        return several[0]
    if several:
        raise field_problem(at, f"{len(several)} {kind}s have the name {name[:70]!r}; {advice}")
    raise missing_problem(at, kind, name)
