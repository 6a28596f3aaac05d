"""A whole fleet in one value, and what happens on it."""

import msgspec

from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostSpec
from roost.model.provider import ProviderSpec
from roost.model.request import Request
from roost.model.work.work_rows import Put


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Providers (parents before children), the hosts on them, aggregates and server groups."""

    providers: list[ProviderSpec] = []
    hosts: list[HostSpec] = []
    aggregates: list[Aggregate] = []
    groups: list[ServerGroup] = []


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """Instances end and give back what they hold; those unknown are passed over."""

    instance_uuids: tuple[str, ...]


class NamedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request whose decision has its uuid beforehand, so that whoever asks can find it whatever happens."""

    request: Request
    decision_uuid: str
    # Steps of work that are taken in the commit of the decision, granted or refused: where they were taken already,
    # nothing is decided.
    work: tuple[Put, ...] = ()


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happens on a fleet at a moment of a trace."""

    at_s: float  # seconds since the start of the trace; below 0: before it
    act: Request | Departure
