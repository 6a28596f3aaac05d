"""A whole fleet in one value, and the events on it."""

import msgspec

from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostSpec
from roost.model.provider import ProviderSpec
from roost.model.request import Request
from roost.model.work.work_rows import ChangeRow, Put


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Providers (parents before children), the hosts on them, aggregates and server groups."""

    providers: list[ProviderSpec] = []
    hosts: list[HostSpec] = []
    aggregates: list[Aggregate] = []
    groups: list[ServerGroup] = []


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """Instances end and release their allocations; unknown ones are ignored."""

    instance_uuids: tuple[str, ...]
    trail: tuple[ChangeRow, ...] = ()  # the records of the client's change


class NamedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with a predetermined decision uuid, so that the client can find the decision after any failure."""

    request: Request
    decision_uuid: str = ""  # empty: a new one
    # Rows of work for the commit of the decision, whether granted or refused. If they are committed already, Roost does
    # not decide.
    work: tuple[Put, ...] = ()
    change: ChangeRow | None = None  # the record of the client's change; the decision adds its object and details


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event on a fleet at one moment of a trace."""

    at_s: float  # seconds since the start of the trace; below 0: before it
    act: Request | Departure
