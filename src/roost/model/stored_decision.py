"""The stored form of a decision: a row with a compact record as its body, and documents.

Thousands are stored per second, so repeated values are stored once, in documents: the request, the settings, and the
rules with their reasons (``Checks``).
"""

from functools import lru_cache

import msgspec

from roost.model.evidence.decision import Decision, HostScore, Limits, Pick, Scale, Stage
from roost.model.evidence.fleet_part import FleetPart
from roost.model.names import uuid_text
from roost.model.writes import EvidenceRow

# An allocation: the provider's uuid, and an index into the record's amounts.
StoredAllocation = tuple[bytes, int]
# Value of ``ahead`` in records from before this field existed.
UNKNOWN = -1


class Moment(msgspec.Struct, frozen=True):
    """The moment of a decision: the durable changes it saw, and the earlier writes in the same group commit."""

    position: int  # of the newest visible change
    ahead: int  # earlier claims and releases in the same group commit; ``UNKNOWN``: not recorded
    seen: str  # the visible changes, if positions do not determine them: see ``Store.visible_changes``


class DecisionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for stored decisions; all conditions must hold."""

    host: str = ""  # name of a chosen host; empty: any
    project_id: str | None = None
    outcome: str = ""  # granted, refused; empty: either
    reason: str = ""  # a substring
    uuids: tuple[bytes, bytes] | None = None  # the first and the last uuid of a range; None: any
    since_s: float = 0.0  # seconds since the epoch
    after: int = -1  # lower bound of numbers, exclusive
    before: int = 2**63 - 1  # upper bound of numbers, exclusive
    newest: int = 20  # upper bound of the result count


class Checks(msgspec.Struct, frozen=True, array_like=True):
    """The rules and weighers for requests of one shape, in order."""

    rules: list[tuple[str, str]]  # name, reason
    weighers: list[str]


class StoredPick(msgspec.Struct, frozen=True, array_like=True):
    """A pick or an alternate."""

    host: str
    node: str  # empty: named like the host
    cell: str
    instance_uuid: bytes  # empty: an alternate
    held: list[StoredAllocation]
    limits: Limits = {}
    mappings: dict[str, list[bytes]] = {}


class Record(msgspec.Struct, frozen=True, array_like=True):
    """The body of an evidence row. Fields are only ever added, at the end and with a default."""

    request_id: int
    checks_id: int
    count: int
    hosts: int  # judged
    rejects: list[int]  # one per rule
    scales: list[tuple[float, float, float]]  # low, high, multiplier; one per weigher
    best: list[HostScore]
    amounts: list[dict[str, int]]
    picks: list[StoredPick]
    alternates: list[StoredPick]
    conflicts: list[str]
    warnings: list[str]
    position: int
    seed: int
    search_s: float
    rank_s: float
    found: int = 0
    # The state of the columns at the decision: see ``Moment``.
    ahead: int = UNKNOWN
    seen: str = ""
    user_id: str = ""
    instances: list[bytes] = []  # of a refusal: uuids
    # The part of the process: document of all processes, position of this one, and ``FleetPart.is_within``.
    processes_id: int = 0  # 0: the process had no part
    own: int = 0
    is_within: bool = False


# Stored uuids of a refusal.
_REFUSED_MAX = 1_000
# Value of ``seen`` in a decision with a remote Placement.
REMOTE = "remote"

_encoder = msgspec.msgpack.Encoder()
_record = msgspec.msgpack.Decoder(Record)
_checks = msgspec.msgpack.Decoder(Checks)
_processes = msgspec.msgpack.Decoder(tuple[int, ...])


def pack_checks(checks: Checks) -> bytes:
    """Encode the document behind ``checks_id`` of a record."""
    return _encoder.encode(checks)


def pack_processes(part: FleetPart) -> bytes:
    """Encode the document behind ``processes_id`` of a record; equal for all processes."""
    return _encoder.encode(part.processes)


def pack(decision: Decision, *, checks_id: int, ahead: int = 0, seen: str = "", processes_id: int = 0) -> bytes:
    """Encode the body of a decision's row.

    Args:
        decision: the decision.
        checks_id, processes_id: documents of its checks and of the processes in its part.
        ahead, seen: as in its ``Moment``.
    """
    part = decision.part
    amounts: list[dict[str, int]] = []
    stages = decision.stages
    return _encoder.encode(
        Record(
            decision.request_id,
            checks_id,
            decision.count,
            stages[0].before if stages else 0,
            [stage.before - stage.after for stage in stages],
            [(scale.low, scale.high, scale.multiplier) for scale in decision.scales],
            decision.best,
            amounts,
            [_pack_pick(pick, amounts) for pick in decision.picks],
            [_pack_pick(pick, amounts) for picks in decision.alternates.values() for pick in picks],
            decision.conflicts,
            decision.warnings,
            decision.position,
            decision.seed,
            decision.search_s,
            decision.rank_s,
            found=decision.found,
            ahead=ahead,
            seen=seen,
            user_id=decision.user_id,
            instances=[bytes.fromhex(uuid.replace("-", "")) for uuid in decision.instance_uuids[:_REFUSED_MAX]],
            processes_id=0 if part is None else processes_id,
            own=0 if part is None else part.processes.index(part.own),
            is_within=part is not None and part.is_within,
        )
    )


def _pack_pick(pick: Pick, amounts: list[dict[str, int]]) -> StoredPick:
    held = []
    for provider, amount in pick.allocations.items():
        if amount not in amounts:
            amounts.append(amount)
        held.append((_provider_bytes(provider), amounts.index(amount)))
    node = "" if pick.node == pick.host else pick.node
    instance = bytes.fromhex(pick.instance_uuid.replace("-", ""))
    mappings = {suffix: [_provider_bytes(each) for each in uuids] for suffix, uuids in pick.mappings.items()}
    return StoredPick(pick.host, node, pick.cell, instance, held, pick.limits, mappings)


@lru_cache(maxsize=65_536)
def _provider_bytes(text: str) -> bytes:
    """Return the bytes of a uuid, cached."""
    return bytes.fromhex(text.replace("-", ""))


def unpack(row: EvidenceRow, checks: bytes, *, processes: bytes = b"") -> Decision:
    """Decode a stored decision.

    Args:
        row: its row.
        checks, processes: the documents that the row refers to; ``processes`` only for a part of the fleet.
    """
    record, names = _record.decode(row.body), _checks.decode(checks)
    stages, before = [], record.hosts
    for (rule, reason), rejected in zip(names.rules, record.rejects, strict=True):
        stages.append(Stage(rule, before, before - rejected, reason))
        before -= rejected
    alternates: dict[str, list[Pick]] = {}
    for chosen in record.alternates:
        alternates.setdefault(chosen.cell, []).append(_unpack_pick(chosen, record.amounts))
    return Decision(
        uuid=uuid_text(row.uuid),
        decided_at_s=row.decided_at_s,
        outcome="granted" if row.outcome == "granted" else "refused",
        request_id=record.request_id,
        count=record.count,
        found=record.found,
        picks=[_unpack_pick(chosen, record.amounts) for chosen in record.picks],
        alternates=alternates,
        stages=stages,
        scales=[Scale(name, *scale) for name, scale in zip(names.weighers, record.scales, strict=False)],
        best=record.best,
        reason=row.reason,
        warnings=record.warnings,
        conflicts=record.conflicts,
        position=record.position,
        seed=record.seed,
        settings_id=row.settings_id,
        search_s=record.search_s,
        rank_s=record.rank_s,
        project_id=row.project_id,
        user_id=record.user_id,
        instance_uuids=list(map(uuid_text, record.instances)),
        part=None if not record.processes_id else _unpack_part(record, processes),
    )


def _unpack_part(record: Record, processes: bytes) -> FleetPart:
    numbers = _processes.decode(processes)
    return FleetPart(numbers[record.own], numbers, record.is_within)


def checks_of(row: EvidenceRow) -> int:
    """Return the number of the document with the checks of a stored decision."""
    return _record.decode(row.body).checks_id


def processes_of(row: EvidenceRow) -> int:
    """Return the number of the document with the processes of a stored decision; 0: it has no part of the fleet."""
    return _record.decode(row.body).processes_id


def request_of(row: EvidenceRow) -> tuple[int, int]:
    """Return the number of the request's document, and the instance count, of a stored decision."""
    record = _record.decode(row.body)
    return record.request_id, record.count


def arrival_of(row: EvidenceRow) -> tuple[int, int, bytes]:
    """Return the number of the request's document, the instance count, and the first instance's uuid, if known."""
    record = _record.decode(row.body)
    first = record.picks[0].instance_uuid if record.picks else record.instances[0] if record.instances else b""
    return record.request_id, record.count, first


def moment_of(row: EvidenceRow) -> Moment:
    """Return the moment of a stored decision."""
    record = _record.decode(row.body)
    return Moment(record.position, record.ahead, record.seen)


def drop_seen(body: bytes) -> bytes:
    """Drop the visible changes from the body of a row: the decision can be read, but not replayed."""
    record = _record.decode(body)
    return _encoder.encode(msgspec.structs.replace(record, seen="")) if record.seen not in {"", REMOTE} else body


def _unpack_pick(chosen: StoredPick, amounts: list[dict[str, int]]) -> Pick:
    return Pick(
        chosen.host,
        chosen.node or chosen.host,
        chosen.cell,
        uuid_text(chosen.instance_uuid) if chosen.instance_uuid else "",
        {uuid_text(provider): amounts[at] for provider, at in chosen.held},
        chosen.limits,
        {suffix: tuple(map(uuid_text, uuids)) for suffix, uuids in chosen.mappings.items()},
    )
