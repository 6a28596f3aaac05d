"""Workloads: a fleet, and the requests and departures on it in order of time."""

import math
from collections.abc import Iterable

import msgspec

from roost.errors import BadRequest
from roost.model.fleet import Departure, Event, Fleet
from roost.model.request import Request


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet and its events, sorted by time; at equal times departures come before arrivals."""

    name: str
    fleet: Fleet
    events: list[Event]
    notes: tuple[str, ...] = ()  # on the interpretation of the source, for the report


class Stay(msgspec.Struct, frozen=True):
    """A request, and the lifetime of its instances."""

    request: Request  # with instance uuids
    starts_s: float  # seconds since the start of the trace; below 0: before it
    ends_s: float = math.inf  # inf: outlives the trace


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options for reading a trace."""

    hosts: tuple[str, ...] = ()  # kinds of hosts, for a trace without hosts: see ``traces.cospot``
    has_departures: bool = True  # False: instances stay
    limit: int | None = None  # number of requests, the earliest first

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise BadRequest(f"the limit must be 1 request or more, got {self.limit}")


def build_workload(
    stays: Iterable[Stay], *, name: str, fleet: Fleet, options: Options, notes: tuple[str, ...] = ()
) -> Workload:
    """Turn stays into events.

    A trace ends with its last arrival. Later departures are left out, so that the fleet is not empty at
    the end.

    Args:
        stays: in any order; stays with equal starts keep their order.
    """
    selected = sorted(stays, key=lambda stay: stay.starts_s)[: options.limit]
    last_s = selected[-1].starts_s if selected else -math.inf
    entries = [(stay.starts_s, 1, Event(at_s=stay.starts_s, act=stay.request)) for stay in selected]
    outliving = 0
    for stay in selected if options.has_departures else ():
        if stay.ends_s > last_s:
            outliving += 1
            continue
        # A stay without duration must still end after its start.
        rank = 2 if stay.ends_s == stay.starts_s else 0
        departure = Departure(instance_uuids=stay.request.instance_uuids)
        entries.append((stay.ends_s, rank, Event(at_s=stay.ends_s, act=departure)))
    entries.sort(key=lambda entry: entry[:2])
    if not options.has_departures:
        notes = (*notes, "departures are left out")
    elif outliving and any(math.isfinite(stay.ends_s) for stay in selected):
        notes = (
            *notes,
            f"{outliving:,} of {len(selected):,} requests outlive the last arrival, where the replay ends",
        )
    return Workload(name=name, fleet=fleet, events=[event for _, _, event in entries], notes=notes)
