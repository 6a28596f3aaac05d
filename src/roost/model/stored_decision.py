"""A decision as it is stored: what its row and its documents do not say already, packed tightly.

Thousands are stored a second, so names that repeat are stored once, in documents: the request, the settings,
and the rules with their reasons (``Checks``).
"""

from functools import lru_cache

import msgspec

from roost.model.evidence.decision import Decision, HostScore, Limits, Pick, Scale, Stage
from roost.model.names import uuid_text
from roost.model.writes import EvidenceRow

# An allocation: the provider's uuid, and which of the record's amounts it has.
Held = tuple[bytes, int]
# In place of a number of writes: the record is older than this field.
UNKNOWN = -1


class Moment(msgspec.Struct, frozen=True):
    """What a decision saw: the changes that were durable, and the first writes of its own group."""

    position: int  # of the newest change it saw
    ahead: int  # claims and releases of its group that were in the columns already; ``UNKNOWN``: nobody noted it
    seen: str  # which changes it saw, where positions do not say it: see ``Store.seen``


class DecisionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which stored decisions are wanted: those of which all of this is true."""

    host: str = ""  # a chosen one; empty: any
    project_id: str | None = None
    outcome: str = ""  # granted, refused; empty: either
    reason: str = ""  # a part of it
    since_s: float = 0.0  # seconds since the epoch
    before: int = 2**63 - 1  # only of lower numbers
    newest: int = 20  # so many at most


class Checks(msgspec.Struct, frozen=True, array_like=True):
    """The rules that judged requests of one shape, in order, and the weighers that weighed."""

    rules: list[tuple[str, str]]  # name, reason
    weighers: list[str]


class Chosen(msgspec.Struct, frozen=True, array_like=True):
    """A pick or an alternate."""

    host: str
    node: str  # empty: named like the host
    cell: str
    instance_uuid: bytes  # empty: an alternate
    held: list[Held]
    limits: Limits = {}
    mappings: dict[str, list[bytes]] = {}


class Record(msgspec.Struct, frozen=True, array_like=True):
    """The body of an evidence row. Fields are only ever added, at the end and with a default."""

    request_id: int
    checks_id: int
    count: int
    hosts: int  # judged
    rejects: list[int]  # one a rule
    scales: list[tuple[float, float, float]]  # low, high, multiplier; one a weigher
    best: list[HostScore]
    amounts: list[dict[str, int]]
    picks: list[Chosen]
    alternates: list[Chosen]
    conflicts: list[str]
    warnings: list[str]
    position: int
    seed: int
    search_s: float
    rank_s: float
    found: int = 0
    # What the columns held: see ``Moment``.
    ahead: int = UNKNOWN
    seen: str = ""


# In place of the changes that a decision saw, where what it saw was answered by a Placement of another server.
REMOTE = "remote"

_encoder = msgspec.msgpack.Encoder()
_record = msgspec.msgpack.Decoder(Record)
_checks = msgspec.msgpack.Decoder(Checks)


def pack_checks(checks: Checks) -> bytes:
    """Return the document that ``checks_id`` of a record stands for."""
    return _encoder.encode(checks)


def pack(decision: Decision, *, checks_id: int, ahead: int = 0, seen: str = "") -> bytes:
    """Return the body of the row that stores a decision; ``ahead`` and ``seen`` are those of its ``Moment``."""
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
        )
    )


def _pack_pick(pick: Pick, amounts: list[dict[str, int]]) -> Chosen:
    held = []
    for provider, amount in pick.allocations.items():
        if amount not in amounts:
            amounts.append(amount)
        held.append((_provider_bytes(provider), amounts.index(amount)))
    node = "" if pick.node == pick.host else pick.node
    instance = bytes.fromhex(pick.instance_uuid.replace("-", ""))
    mappings = {suffix: [_provider_bytes(each) for each in uuids] for suffix, uuids in pick.mappings.items()}
    return Chosen(pick.host, node, pick.cell, instance, held, pick.limits, mappings)


@lru_cache(maxsize=65_536)
def _provider_bytes(text: str) -> bytes:
    """Return a uuid that is likely to come again."""
    return bytes.fromhex(text.replace("-", ""))


def unpack(row: EvidenceRow, checks: bytes) -> Decision:
    """Return a stored decision, from its row and the document of its checks."""
    record, known = _record.decode(row.body), _checks.decode(checks)
    stages, before = [], record.hosts
    for (rule, reason), rejected in zip(known.rules, record.rejects, strict=True):
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
        scales=[Scale(name, *scale) for name, scale in zip(known.weighers, record.scales, strict=False)],
        best=record.best,
        reason=row.reason,
        warnings=record.warnings,
        conflicts=record.conflicts,
        position=record.position,
        seed=record.seed,
        settings_id=row.settings_id,
        search_s=record.search_s,
        rank_s=record.rank_s,
    )


def checks_of(row: EvidenceRow) -> int:
    """Return the number of the document that holds the checks of a stored decision."""
    return _record.decode(row.body).checks_id


def request_of(row: EvidenceRow) -> tuple[int, int]:
    """Return the document of the request of a stored decision, and how many instances it asked for."""
    record = _record.decode(row.body)
    return record.request_id, record.count


def moment_of(row: EvidenceRow) -> Moment:
    """Return what a stored decision saw."""
    record = _record.decode(row.body)
    return Moment(record.position, record.ahead, record.seen)


def drop_seen(body: bytes) -> bytes:
    """Return the body of a row that no longer tells which changes the decision saw: it can be read, not replayed."""
    record = _record.decode(body)
    return _encoder.encode(msgspec.structs.replace(record, seen="")) if record.seen not in {"", REMOTE} else body


def _unpack_pick(chosen: Chosen, amounts: list[dict[str, int]]) -> Pick:
    return Pick(
        chosen.host,
        chosen.node or chosen.host,
        chosen.cell,
        uuid_text(chosen.instance_uuid) if chosen.instance_uuid else "",
        {uuid_text(provider): amounts[at] for provider, at in chosen.held},
        chosen.limits,
        {suffix: tuple(map(uuid_text, uuids)) for suffix, uuids in chosen.mappings.items()},
    )
