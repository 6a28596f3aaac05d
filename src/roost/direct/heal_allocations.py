"""Heals missing allocations of running instances while all services but the database are stopped."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Literal, NamedTuple

import msgspec

from roost.app import open_offline
from roost.direct.rebuild_claim import ClaimPlanner
from roost.engine.columns.state import Holder
from roost.errors import BadRequest, NotFound
from roost.machine import SystemClock
from roost.model.names import uuid_bytes, uuid_text
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.model.work.work_rows import StatusRow
from roost.ports import Store, WorkReader
from roost.product import Roost
from roost.scheduler.pipeline.host_picks import Allocations
from roost.scheduler.shape.shape import Shape
from roost.store.backends import open_reader

_BATCH = 50  # instances per read
_GONE = frozenset({"DELETED", "SHELVED_OFFLOADED"})  # statuses without allocations
# Classes of individual devices; only the host knows the device of an instance.
_DEVICES = frozenset({"VGPU"})
_DEVICE_PROFILE = "accel:device_profile"

Verdict = Literal["healed", "limit", "no node", "refused", "device", "nothing"]
Echo = Callable[[str], None]


class HealOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The instances to heal, and how."""

    instance: str | None = None  # uuid; None: all
    cell: str | None = None  # only its instances; None: all
    max_count: int | None = None  # upper bound of healed instances; None: no bound
    is_forced: bool = False  # whether to replace existing allocations by those of the flavor
    is_dry_run: bool = False


class HealResult(NamedTuple):
    """The result of healing."""

    verdict: Verdict
    healed: int  # healed instances; of a dry run, instances to heal
    problem: str = ""  # of the instance at which healing stopped
    unchecked: int = 0  # later instances that were not checked


class _Stop(NamedTuple):
    verdict: Verdict
    problem: str


def heal(url: str, settings: Settings, options: HealOptions, *, echo: Echo) -> HealResult:
    """Claim the missing allocations of instances on their nodes, oldest first.

    The amounts and providers are those that the scheduler would claim. The instance then counts on its host and in its
    server group. Instances with a task, without a node, or without a need for allocations are skipped. Existing
    allocations stay, under the instance's own project and user.

    Args:
        url: URL of the database.
        settings: settings of the scheduler.
        echo: called with one sentence per instance.

    Raises:
        NotFound: the instance does not exist.
        StoreBroken: the database is missing, or a stored instance cannot be decoded.
        StoreBusy: a server still runs on this SQLite file.
        Unavailable: the database cannot be used; the message gives the reason.
    """
    count = 0
    opened = open_reader(url, settings=settings.store)
    with closing(opened) as store, closing(store.work_reader(SystemClock())) as reader:
        statuses = _read_one(reader, options.instance) if options.instance else _read_all(reader)
        rows = (row for row in statuses if options.cell is None or row.cell == options.cell)
        with open_offline(url, settings) as roost:
            healer = _Healer(store, roost, options=options, echo=echo)
            for row in rows:
                outcome = healer.heal(row)
                if isinstance(outcome, _Stop):
                    return HealResult(outcome.verdict, count, outcome.problem, sum(1 for _ in rows))
                count += outcome
                if options.max_count is not None and count >= options.max_count:
                    return HealResult("limit", count)
    return HealResult("healed" if count else "nothing", count)


class _Healer:
    def __init__(self, store: Store, roost: Roost, *, options: HealOptions, echo: Echo) -> None:
        self._roost, self._options, self._echo = roost, options, echo
        self._planner = ClaimPlanner(roost, store.document)

    def heal(self, status: StatusRow) -> bool | _Stop:
        """Heal one instance; return whether it changed, or why healing must stop."""
        uuid = uuid_text(status.uuid)
        reason = _skip_reason(status)
        if reason:
            self._echo(f"instance {uuid} is skipped: {reason}")
            return False
        row, holder = self._planner.find_row(status), self._planner.state.holders.get(status.uuid)
        is_complete = (
            holder is not None and self._is_owned(holder, status) and (holder.instance is not None or row is None)
        )
        if is_complete and not self._options.is_forced:
            self._echo(f"instance {uuid} already has its allocations")
            return False
        if row is None:
            return _Stop("no node", f"instance {uuid} is on node {status.node}, and no host has such a node")
        request = self._planner.read_request(status)
        try:
            return self._reclaim(status, row, request, is_complete=is_complete)
        except (BadRequest, NotFound) as error:
            return _Stop("refused", f"instance {uuid}: {error}")

    def _reclaim(self, status: StatusRow, row: int, request: Request, *, is_complete: bool) -> bool | _Stop:
        uuid, state = uuid_text(status.uuid), self._planner.state
        shape = self._roost.scheduler.shape(request)
        holder = state.holders.get(status.uuid)
        held: Allocations = {} if holder is None else self._planner.read_allocations(holder)
        if held and not self._options.is_forced:
            return self._put(shape, status, row, allocations=held)
        device = _find_device(request, shape)
        if device:
            return _Stop("device", f"instance {uuid} has {device}, and only its host knows the device")
        allocations = self._planner.find_allocations(shape, status, row)
        if isinstance(allocations, str):
            return _Stop("refused", f"instance {uuid} cannot hold its requested amounts: {allocations}")
        if allocations == held and is_complete:
            return False
        return self._put(shape, status, row, allocations=allocations)

    def _put(self, shape: Shape, status: StatusRow, row: int, *, allocations: Allocations) -> bool | _Stop:
        uuid, amounts = uuid_text(status.uuid), _describe_amounts(allocations)
        planned = self._planner.plan(shape, status, row, allocations=allocations)
        if isinstance(planned, str):
            return _Stop("refused", f"instance {uuid} cannot hold {amounts}: {planned}")
        refusal = None if self._options.is_dry_run else self._roost.placement.commit([planned.item])[0]
        if refusal is not None:
            reason = refusal.work or refusal.table or refusal.kind
            return _Stop("refused", f"instance {uuid} cannot hold {amounts}: {reason} was changed concurrently")
        outside = f", outside of its server group: {planned.outside}" if planned.outside else ""
        self._echo(f"instance {uuid} {'would hold' if self._options.is_dry_run else 'holds'} {amounts}{outside}")
        return True

    def _is_owned(self, holder: Holder, status: StatusRow) -> bool:
        """Return whether a consumer has the project and user of the instance."""
        placement = self._roost.settings.placement
        defaults = (placement.incomplete_consumer_project_id, placement.incomplete_consumer_user_id)
        owner_pairs = ((row.project_id or defaults[0], row.user_id or defaults[1]) for row in (holder, status))
        return next(owner_pairs) == next(owner_pairs)


def _find_device(request: Request, shape: Shape) -> str:
    """Find the first resource of a request with a device known only to the host; empty: none."""
    groups = () if shape.query is None else shape.query.groups
    classes = sorted({name for group in groups for name in group.resources} & _DEVICES)
    return (classes or [_DEVICE_PROFILE] * (_DEVICE_PROFILE in request.flavor.extra_specs) or [""])[0]


def _describe_amounts(amounts: Mapping[str, Mapping[str, int]]) -> str:
    return "; ".join(
        f"{', '.join(f'{amount} {name}' for name, amount in resources.items())} of provider {provider}"
        for provider, resources in amounts.items()
    )


def _skip_reason(row: StatusRow) -> str:
    if row.status in _GONE:
        return f"it is {row.status}"
    if row.task or row.operation_id:
        return f"it has a task in progress ({row.task or 'an operation'})"
    return "" if row.node else "it is on no node"


def _read_one(reader: WorkReader, uuid: str) -> Iterator[StatusRow]:
    body = uuid_bytes(uuid)
    row = None if body is None else reader.status(body)
    if row is None:
        raise NotFound("instance", uuid)
    return iter([row])


def _read_all(reader: WorkReader) -> Iterator[StatusRow]:
    """Yield the statuses of all instances, oldest first."""
    rows = reader.statuses(limit=_BATCH)
    while rows:
        yield from rows
        rows = reader.statuses(after_id=rows[-1].id, limit=_BATCH)
