"""Instances that hold nothing where they run get allocations, while everything but the database is stopped."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, Literal, NamedTuple
from urllib.parse import urlencode

import msgspec

from roost.compute.allocations import amounts_of as held_amounts
from roost.compute.allocations import holdings_of
from roost.compute.report.client import ReportClient
from roost.direct.offline import offline
from roost.errors import Conflict, NotFound, understood
from roost.machine import SystemClock
from roost.model.flavor import Flavor
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Request
from roost.model.work import StatusRow
from roost.ports import Store, WorkReader
from roost.scheduler.translate import amounts_of
from roost.store.opening import open_reader

_BATCH = 50
_GONE = frozenset({"DELETED", "SHELVED_OFFLOADED"})  # these are to hold nothing
# Whoever holds these uses one of several devices, and only its host knows which.
_DEVICES = frozenset({"VGPU"})
_DEVICE_PROFILE = "accel:device_profile"

Verdict = Literal["healed", "limit", "no node", "refused", "device", "nothing"]
Tell = Callable[[str], None]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which instances are healed, and how."""

    instance: str | None = None  # its uuid; None: all
    cell: str | None = None  # only those of one; None: of all
    most: int | None = None  # so many at most; None: all
    is_forced: bool = False  # whether an instance that holds something holds what its flavor says afterwards
    is_dry_run: bool = False


class Healed(NamedTuple):
    """What came of it."""

    verdict: Verdict
    healed: int  # instances, or that would have been
    problem: str = ""  # of the one where it ended


class _Ended(NamedTuple):
    verdict: Verdict
    problem: str


def heal(url: str, asked: Asked, *, tell: Tell) -> Healed:
    """Let instances hold what their flavor says on the node where they run, the oldest first.

    Instances that somebody works on, that are on no node, or that are to hold nothing are passed over. One that holds
    something keeps it, under its own project and user where it has others.

    Args:
        url: of the database.
        tell: is told what is done, a sentence an instance.

    Raises:
        NotFound: there is no such instance.
        StoreBusy, Unavailable: see ``offline``.
    """
    count = 0
    with closing(open_reader(url)) as store, closing(store.work_reader(SystemClock())) as reader:
        rows = _one(reader, asked.instance) if asked.instance else _all(reader)
        with offline(url) as report:
            healing = _Healing(store, report, asked=asked, tell=tell)
            for row in rows:
                if asked.cell is not None and row.cell != asked.cell:
                    continue
                done = healing.heal(row)
                if isinstance(done, _Ended):
                    return Healed(done.verdict, count, done.problem)
                count += done
                if asked.most is not None and count >= asked.most:
                    return Healed("limit", count)
    return Healed("healed" if count else "nothing", count)


class _Healing:
    def __init__(self, store: Store, report: ReportClient, *, asked: Asked, tell: Tell) -> None:
        self._store, self._report, self._asked, self._tell = store, report, asked, tell

    def heal(self, row: StatusRow) -> bool | _Ended:
        """Say whether an instance was healed, or why no other one is."""
        uuid = uuid_text(row.uuid)
        reason = _passed_over(row)
        if reason:
            self._tell(f"instance {uuid} is passed over: {reason}")
            return False
        found = self._report.get_allocs_for_consumer(uuid)
        held = held_amounts(found["allocations"])
        is_owned = not held or (found["project_id"], found["user_id"]) == (row.project_id, row.user_id)
        if held and is_owned and not self._asked.is_forced:
            self._tell(f"instance {uuid} holds what it needs")
            return False
        if not held or self._asked.is_forced:
            wanted = self._wanted(row, uuid)
            if isinstance(wanted, _Ended):
                return wanted
        else:
            wanted = held
        if wanted == held and is_owned:
            return False
        return self._put(row, wanted, generation=found.get("consumer_generation"))

    def _wanted(self, row: StatusRow, uuid: str) -> Mapping[str, Mapping[str, int]] | _Ended:
        """Return what an instance is to hold where it is, by provider and class."""
        request = self._request(row)
        amounts = amounts_of(request)
        devices = sorted(_DEVICES & set(amounts)) + [_DEVICE_PROFILE] * (_DEVICE_PROFILE in request.flavor.extra_specs)
        if devices:
            return _Ended("device", f"instance {uuid} has {devices[0]}, and only its host knows which device that is")
        try:
            root = self._report.get_provider_by_name(row.node)["uuid"]
        except NotFound:
            return _Ended("no node", f"instance {uuid} is on node {row.node}, of which there is no provider")
        told = ",".join(f"{name}:{amount}" for name, amount in amounts.items())
        query = urlencode({"resources": told, "in_tree": root, "limit": 1})
        # Where the node offers it on other providers than its root, or on one that it shares.
        ways = self._report.get_allocation_candidates(query).allocation_requests
        return held_amounts(ways[0]["allocations"]) if ways else {root: amounts}

    def _request(self, row: StatusRow) -> Request:
        with understood(f"the request of instance {uuid_text(row.uuid)}"):
            flavor = msgspec.json.decode(self._document(row.flavor_id), type=Flavor)
            request = msgspec.json.decode(self._document(row.request_id), type=Request)
        return msgspec.structs.replace(request, flavor=flavor, count=1, instance_uuids=(), move=None)

    def _document(self, number: int) -> bytes:
        body = self._store.document(number)
        if body is None:
            raise LookupError(f"there is no document {number}")
        return body

    def _put(
        self, row: StatusRow, wanted: Mapping[str, Mapping[str, int]], *, generation: int | None
    ) -> bool | _Ended:  # fmt: skip
        uuid = uuid_text(row.uuid)
        told = "; ".join(
            f"{', '.join(f'{amount} {name}' for name, amount in amounts.items())} of provider {provider}"
            for provider, amounts in wanted.items()
        )
        if self._asked.is_dry_run:
            self._tell(f"instance {uuid} would hold {told}")
            return True
        body: dict[str, Any] = {
            "allocations": holdings_of(wanted), "project_id": row.project_id, "user_id": row.user_id,
            "consumer_generation": generation,
        }  # fmt: skip
        try:
            is_done = self._report.put_allocations(uuid, body)
        except Conflict as error:
            return _Ended("refused", f"instance {uuid}: {error}")
        if not is_done:
            return _Ended("refused", f"instance {uuid} cannot hold {told}: Placement refuses it")
        self._tell(f"instance {uuid} holds {told}")
        return True


def _passed_over(row: StatusRow) -> str:
    if row.status in _GONE:
        return f"it is {row.status}"
    if row.task or row.operation_id:
        return f"somebody works on it ({row.task or 'an operation'})"
    return "" if row.node else "it is on no node"


def _one(reader: WorkReader, uuid: str) -> Iterator[StatusRow]:
    body = uuid_bytes(uuid)
    row = None if body is None else reader.status(body)
    if row is None:
        raise NotFound("instance", uuid)
    return iter([row])


def _all(reader: WorkReader) -> Iterator[StatusRow]:
    """Yield the statuses of all instances, those that were asked for first first."""
    rows = reader.statuses(most=_BATCH)
    while rows:
        yield from rows
        rows = reader.statuses(after_id=rows[-1].id, most=_BATCH)
