"""Replays of stored decisions: their request and settings, and the comparison of both results."""

from collections import Counter
from typing import TypeVar

import msgspec

from roost.errors import StateLost
from roost.model.evidence.decision import Decision
from roost.model.evidence.replay_result import HostDifference, HostStanding, ReplayResult
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.ports import Store

# Fields that may differ between a decision and its replay. Texts may differ, too: they change with versions.
_VARYING = {"search_s": 0.0, "rank_s": 0.0, "request_id": 0, "settings_id": 0, "instance_uuids": []}

_Document = TypeVar("_Document")


def request_of(decision: Decision, store: Store) -> Request:
    """Return the request of a stored decision; instances without a host have no uuids.

    Raises:
        StateLost: it was deleted, or cannot be read.
    """
    request = _read(decision, store.document(decision.request_id), Request)
    uuids = tuple(pick.instance_uuid for pick in decision.picks)
    return msgspec.structs.replace(request, count=decision.count, instance_uuids=uuids, user_id=decision.user_id)


def settings_of(decision: Decision, store: Store) -> Settings:
    """Return the settings of a stored decision, without those of the store.

    Raises:
        StateLost: they were deleted, or cannot be read.
    """
    return _read(decision, store.document(decision.settings_id), Settings)


def _read(decision: Decision, body: bytes | None, kind: type[_Document]) -> _Document:
    if body is None:
        raise StateLost(decision.uuid, f"its {kind.__name__.lower()} is no longer stored")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise StateLost(decision.uuid, f"its {kind.__name__.lower()} cannot be read: {error}") from error


def compare_decisions(
    stored: Decision, replayed: Decision, standings: tuple[dict[str, HostStanding], dict[str, HostStanding]] = ({}, {})
) -> ReplayResult:
    """Compare a decision with its replay.

    Args:
        stored, replayed: the decision and its replay.
        standings: the standing of every host at the decision, and at the replay.
    """
    # A replay has no other processes to lose races against, and no feed.
    replayed = msgspec.structs.replace(replayed, conflicts=stored.conflicts, position=stored.position)
    stored_plain, replayed_plain = _strip_text(stored), _strip_text(replayed)
    fields = [
        name
        for name in Decision.__struct_fields__
        if name not in _VARYING and getattr(stored_plain, name) != getattr(replayed_plain, name)
    ]
    picks = [Counter(pick.node for pick in decision.picks) for decision in (stored, replayed)]
    differences = []
    for node in sorted(
        {*picks[0], *picks[1], *standings[0], *standings[1]}, key=lambda node: (not any(p[node] for p in picks), node)
    ):
        then, now = (side.get(node, HostStanding()) for side in standings)
        if then != now or picks[0][node] != picks[1][node]:
            difference = HostDifference(
                node=node, picks_then=picks[0][node], picks_now=picks[1][node], then=then, now=now
            )
            differences.append(difference)
    return ReplayResult(stored=stored, again=replayed, is_same=not fields, fields=fields, differences=differences)


def _strip_text(decision: Decision) -> Decision:
    """Remove a decision's text; outcome, stages and hosts remain."""
    stages = [msgspec.structs.replace(stage, reason="") for stage in decision.stages]
    warnings = [""] * len(decision.warnings)
    return msgspec.structs.replace(decision, stages=stages, reason="", warnings=warnings)
