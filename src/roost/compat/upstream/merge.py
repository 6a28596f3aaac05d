"""The plan of an import, from the source (there), the local data (here) and the memory of earlier imports."""

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from roost.compat.upstream.import_memory import CopyDigests, Memory, Things
from roost.compat.upstream.placement_world import Consumer, Provider, World, digest

Thing = TypeVar("Thing", Provider, Consumer)


class Work(Generic[Thing]):
    """The planned changes of the providers, or of the consumers."""

    def __init__(self) -> None:
        self.create: list[Thing] = []
        self.change: list[tuple[Thing, Thing]] = []  # here, there
        self.remove: list[Thing] = []  # as here
        self.same = 0
        self.ahead: list[str] = []  # uuids of things changed or deleted here only
        self.known: Things = {}  # new digests of things equal without a copy, or deleted on both sides


class ImportPlan(NamedTuple):
    """The planned changes of an import."""

    providers: Work[Provider]
    consumers: Work[Consumer]
    conflicts: list[str]


def merge(there: World, here: World, memory: Memory) -> ImportPlan:
    """Plan the changes that bring the local data up to date with the source, and collect conflicts.

    A thing is imported if it did not change here since it was copied. Things that exist only here stay.
    """
    conflicts: list[str] = []
    providers = _compare(there.providers, here.providers, memory.providers, _format_provider, conflicts)
    consumers = _compare(there.consumers, here.consumers, memory.consumers, _format_consumer, conflicts)
    conflicts += _problems(here, providers, consumers)
    return ImportPlan(providers, consumers, conflicts)


def _format_provider(provider: Provider) -> str:
    return f"provider {provider.uuid} ({provider.name})"


def _format_consumer(consumer: Consumer) -> str:
    return f"consumer {consumer.uuid}"


def _compare(
    there: Mapping[str, Thing],
    here: Mapping[str, Thing],
    copied: Things,
    format_thing: Callable[[Thing], str],
    conflicts: list[str],
) -> Work[Thing]:
    work: Work[Thing] = Work()
    for uuid, theirs in there.items():
        problem = _plan_thing(work, theirs, here.get(uuid), copied.get(uuid))
        if problem:
            conflicts.append(f"{format_thing(theirs)} {problem}")
    for uuid, base in copied.items():
        ours = here.get(uuid)
        if uuid in there or base is None:
            continue
        if ours is None:
            work.known[uuid] = None
        elif digest(ours) == base.here:
            work.remove.append(ours)
        else:
            conflicts.append(f"{format_thing(ours)} has gone there, and changed here")
    return work


def _plan_thing(work: Work[Thing], theirs: Thing, ours: Thing | None, base: CopyDigests | None) -> str:
    """Plan the change of one thing of the source; return the conflict; empty: none."""
    there = digest(theirs)
    has_changed = base is None or base.there != there
    if ours is None:
        if base is None:
            work.create.append(theirs)
        elif has_changed:
            return "was removed here, and has changed there"
        else:
            work.ahead.append(theirs.uuid)
        return ""
    here = digest(ours)
    if here == there:
        work.same += 1
        if has_changed:
            work.known[theirs.uuid] = CopyDigests(there, here)
    elif base is None:
        return "is here already, and differs from what is there"
    elif not has_changed:
        if here == base.here:
            work.same += 1
        else:
            work.ahead.append(theirs.uuid)
    elif here == base.here:
        work.change.append((ours, theirs))
    else:
        return "has changed there and here"
    return ""


def _problems(here: World, providers: Work[Provider], consumers: Work[Consumer]) -> list[str]:
    """Return the conflicts between the planned changes and the local data."""
    gone = {each.uuid for each in providers.remove}
    coming = {each.uuid: each for each in (*providers.create, *(now for _, now in providers.change))}
    after = {uuid: each for uuid, each in here.providers.items() if uuid not in gone} | coming
    found = []
    owners: dict[str, str] = {}
    for provider in after.values():
        owner = owners.setdefault(provider.name, provider.uuid)
        if owner != provider.uuid:
            found.append(f"providers {owner} and {provider.uuid} would both be called {provider.name!r}")
        if provider.parent_uuid is not None and provider.parent_uuid not in after:
            found.append(f"{_format_provider(provider)} has a parent that is not here: {provider.parent_uuid}")
    leaving = {each.uuid for each in consumers.remove} | {ours.uuid for ours, _ in consumers.change}
    for consumer in here.consumers.values():
        if consumer.uuid not in leaving:
            found += [
                f"provider {uuid} has gone there, and consumer {consumer.uuid} holds some of it here"
                for uuid in gone.intersection(consumer.amounts)
            ]
    for consumer in (*consumers.create, *(now for _, now in consumers.change)):
        for uuid, amounts in consumer.amounts.items():
            offered = after[uuid].inventories if uuid in after else {}
            missing = [name for name in amounts if name not in offered]
            if missing:
                found.append(f"{_format_consumer(consumer)} holds {missing[0]} of provider {uuid}, which offers none")
    return found
