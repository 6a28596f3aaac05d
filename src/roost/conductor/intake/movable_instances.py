"""The movable instances of plans: as for a drain, on services with a living agent; and the others."""

from collections.abc import Callable

from roost.conductor.intake.accept_drain import drain_method, instances_of, silence_of
from roost.conductor.moves.migration import leave_request
from roost.conductor.operation.liveness import is_gone
from roost.conductor.operation.stored_request import Documents, request_of
from roost.model.names import uuid_text
from roost.model.work.work_rows import StatusRow
from roost.ports import WorkReader
from roost.scheduler.plans.board import Fixture, Fixtures, Resident, Residents


def movable_instances(reader: WorkReader, documents: Documents, *, may_move: Callable[[StatusRow], bool]) -> Residents:
    """Return a function to list the movable instances of a service.

    Args:
        reader: statuses and agents.
        documents: stored documents; each is read once.
        may_move: whether the client may move an instance.

    Raises:
        StoreBroken: by the function, if the request of an instance is not stored.
    """
    read: dict[int, bytes | None] = {}

    def document(number: int) -> bytes | None:
        if number not in read:
            read[number] = documents(number)
        return read[number]

    def residents(host: str) -> list[Resident]:
        if is_gone(reader.agent(host.lower())):
            return []
        found = []
        for status in instances_of(reader, host):
            how = drain_method(status).how
            if how is None or not may_move(status):
                continue
            request = None if how == "offload" else leave_request(request_of(document, status), status)
            found.append(Resident(uuid_text(status.uuid), status.name, how, request))
        return found

    return residents


def immovable_instances(reader: WorkReader, *, may_move: Callable[[StatusRow], bool]) -> Fixtures:
    """Return a function to list the other instances of a service, with the reasons why they stay.

    The instances of other clients have one entry, without a name.
    """

    def fixtures(host: str) -> list[Fixture]:
        silence = silence_of(host) if is_gone(reader.agent(host.lower())) else ""
        found, hidden = [], 0
        for status in instances_of(reader, host):
            if not may_move(status):
                hidden += 1
                continue
            problem = silence or drain_method(status).problem
            if problem:
                found.append(Fixture(uuid_text(status.uuid), status.name, problem))
        if hidden:
            found.append(Fixture("", "", f"{hidden:,} instances belong to other projects"))
        return found

    return fixtures
