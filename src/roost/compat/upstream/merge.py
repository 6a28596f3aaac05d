"""The plan of an import, from the source (there), the local data (here) and the memory of earlier imports."""

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from roost.compat.upstream.import_memory import CopyDigests, DigestsByUuid, Memory
from roost.compat.upstream.placement_world import Consumer, Provider, World, digest

Record = TypeVar("Record", Provider, Consumer)


class Work(Generic[Record]):
    """The planned changes of the providers, or of the consumers."""

    def __init__(self) -> None:
        self.create: list[Record] = []
        self.change: list[tuple[Record, Record]] = []  # here, there
        self.remove: list[Record] = []  # the local records
        self.same = 0
        self.ahead: list[str] = []  # uuids of records changed or deleted only here
        self.known: DigestsByUuid = {}  # digests to store without a copy: equal, or deleted, on both sides


class ImportPlan(NamedTuple):
    """The planned changes of an import."""

    providers: Work[Provider]
    consumers: Work[Consumer]
    conflicts: list[str]


def merge(there: World, here: World, memory: Memory) -> ImportPlan:
    """Plan the changes that bring the local data up to date with the source, and collect conflicts.

    A provider or consumer is imported if its copy did not change here. Records that exist only here stay.
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
    there: Mapping[str, Record],
    here: Mapping[str, Record],
    copies: DigestsByUuid,
    format_record: Callable[[Record], str],
    conflicts: list[str],
) -> Work[Record]:
    work: Work[Record] = Work()
    for uuid, source_record in there.items():
        problem = _plan_record(work, source_record, here.get(uuid), copies.get(uuid))
        if problem:
            conflicts.append(f"{format_record(source_record)} {problem}")
    for uuid, copy in copies.items():
        local_record = here.get(uuid)
        if uuid in there or copy is None:
            continue
        if local_record is None:
            work.known[uuid] = None
        elif digest(local_record) == copy.here:
            work.remove.append(local_record)
        else:
            conflicts.append(f"{format_record(local_record)} was deleted in the source, and changed here")
    return work


def _plan_record(
    work: Work[Record], source_record: Record, local_record: Record | None, copy: CopyDigests | None
) -> str:
    """Plan the change of one provider or consumer of the source; return the conflict; empty: none."""
    source_digest = digest(source_record)
    has_changed = copy is None or copy.there != source_digest
    if local_record is None:
        if copy is None:
            work.create.append(source_record)
        elif has_changed:
            return "was deleted here, and changed in the source"
        else:
            work.ahead.append(source_record.uuid)
        return ""
    local_digest = digest(local_record)
    if local_digest == source_digest:
        work.same += 1
        if has_changed:
            work.known[source_record.uuid] = CopyDigests(source_digest, local_digest)
    elif copy is None:
        return "exists here, and differs from the source"
    elif not has_changed:
        if local_digest == copy.here:
            work.same += 1
        else:
            work.ahead.append(source_record.uuid)
    elif local_digest == copy.here:
        work.change.append((local_record, source_record))
    else:
        return "changed on both sides"
    return ""


def _problems(here: World, providers: Work[Provider], consumers: Work[Consumer]) -> list[str]:
    """Return the conflicts between the planned changes and the local data."""
    gone = {each.uuid for each in providers.remove}
    upserted = {each.uuid: each for each in (*providers.create, *(new for _, new in providers.change))}
    after = {uuid: each for uuid, each in here.providers.items() if uuid not in gone} | upserted
    problems = []
    owners: dict[str, str] = {}
    for provider in after.values():
        owner = owners.setdefault(provider.name, provider.uuid)
        if owner != provider.uuid:
            problems.append(f"providers {owner} and {provider.uuid} would both be called {provider.name!r}")
        if provider.parent_uuid is not None and provider.parent_uuid not in after:
            problems.append(f"{_format_provider(provider)} has a parent that is missing here: {provider.parent_uuid}")
    released = {each.uuid for each in consumers.remove} | {local_record.uuid for local_record, _ in consumers.change}
    for consumer in here.consumers.values():
        if consumer.uuid not in released:
            problems += [
                f"provider {uuid} was deleted in the source, and consumer {consumer.uuid} has allocations on it here"
                for uuid in gone.intersection(consumer.amounts)
            ]
    for consumer in (*consumers.create, *(new for _, new in consumers.change)):
        for uuid, amounts in consumer.amounts.items():
            inventories = after[uuid].inventories if uuid in after else {}
            missing = [name for name in amounts if name not in inventories]
            if missing:
                problems.append(
                    f"{_format_consumer(consumer)} holds {missing[0]} of provider {uuid}, which offers none"
                )
    return problems
