"""What a simulation is made of: a fleet, and what happens on it in order of time."""

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
    notes: tuple[str, ...] = ()  # how the source was understood, for the report


class Stay(msgspec.Struct, frozen=True):
    """A request, and how long what it asks for is wanted."""

    request: Request  # with instance uuids
    starts_s: float  # seconds since the start of the trace; below 0: before it
    ends_s: float = math.inf  # inf: outlives the trace


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader is told beside its files."""

    hosts: tuple[str, ...] = ()  # kinds of hosts, where the trace has none: see ``traces.cospot``
    has_departures: bool = True  # False: what has arrived stays
    limit: int | None = None  # requests, the first ones in time

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise BadRequest(f"the limit must be 1 request or more, got {self.limit}")


def build_workload(
    stays: Iterable[Stay], *, name: str, fleet: Fleet, options: Options, notes: tuple[str, ...] = ()
) -> Workload:
    """Turn stays into events.

    A trace ends with its last arrival: later departures are left out, so the end state is the one that
    the last request met, and not an empty fleet.

    Args:
        stays: in any order; those that start at the same time keep their order.
    """
    kept_stays = sorted(stays, key=lambda stay: stay.starts_s)[: options.limit]
    last_s = kept_stays[-1].starts_s if kept_stays else -math.inf
    entries = [(stay.starts_s, 1, Event(at_s=stay.starts_s, act=stay.request)) for stay in kept_stays]
    outliving = 0
    for stay in kept_stays if options.has_departures else ():
        if stay.ends_s > last_s:
            outliving += 1
            continue
        # Whatever ends in the moment it starts must still end after it starts.
        rank = 2 if stay.ends_s == stay.starts_s else 0
        departure = Departure(instance_uuids=stay.request.instance_uuids)
        entries.append((stay.ends_s, rank, Event(at_s=stay.ends_s, act=departure)))
    entries.sort(key=lambda entry: entry[:2])
    if not options.has_departures:
        notes = (*notes, "departures are left out")
    elif outliving and any(math.isfinite(stay.ends_s) for stay in kept_stays):
        notes = (
            *notes,
            f"{outliving:,} of {len(kept_stays):,} requests outlive the last arrival, where the replay ends",
        )
    return Workload(name=name, fleet=fleet, events=[event for _, _, event in entries], notes=notes)
