"""Making a stored decision again: its request and settings, and how the two are compared."""

from collections import Counter
from typing import TypeVar

import msgspec

from roost.errors import StateLost
from roost.model.evidence.decision import Decision
from roost.model.evidence.replay_result import HostDifference, HostStanding, Replayed
from roost.model.request import Request
from roost.model.settings.roost_settings import Settings
from roost.ports import Store

# What two makings of a decision may differ in; words too, which another version may choose otherwise.
_VARYING = {"search_s": 0.0, "rank_s": 0.0, "request_id": 0, "settings_id": 0}

_Document = TypeVar("_Document")


def request_of(decision: Decision, store: Store) -> Request:
    """Return the request that a stored decision answered; instances that it did not place have no names.

    Raises:
        StateLost: it is not kept, or cannot be read.
    """
    request = _read(decision, store.document(decision.request_id), Request)
    uuids = tuple(pick.instance_uuid for pick in decision.picks)
    return msgspec.structs.replace(request, count=decision.count, instance_uuids=uuids)


def settings_of(decision: Decision, store: Store) -> Settings:
    """Return the settings that a stored decision was made under, those of the store left out.

    Raises:
        StateLost: they are not kept, or cannot be read.
    """
    return _read(decision, store.document(decision.settings_id), Settings)


def _read(decision: Decision, body: bytes | None, kind: type[_Document]) -> _Document:
    if body is None:
        raise StateLost(decision.uuid, f"its {kind.__name__.lower()} is not kept")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise StateLost(decision.uuid, f"its {kind.__name__.lower()} cannot be read: {error}") from error


def compare_decisions(
    stored: Decision, again: Decision, standings: tuple[dict[str, HostStanding], dict[str, HostStanding]] = ({}, {})
) -> Replayed:
    """Compare a decision with itself made again.

    Args:
        stored, again: the two.
        found: how every host stood then, and stands now.
    """
    # Races are lost against others, and there are none here; nor is there a feed.
    again = msgspec.structs.replace(again, conflicts=stored.conflicts, position=stored.position)
    plain, other = _strip_text(stored), _strip_text(again)
    fields = [
        name
        for name in Decision.__struct_fields__
        if name not in _VARYING and getattr(plain, name) != getattr(other, name)
    ]
    picks = [Counter(pick.node for pick in decision.picks) for decision in (stored, again)]
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
    return Replayed(stored=stored, again=again, is_same=not fields, fields=fields, differences=differences)


def _strip_text(decision: Decision) -> Decision:
    """Return a decision without its sentences: outcome, stages and hosts tell what happened."""
    stages = [msgspec.structs.replace(stage, reason="") for stage in decision.stages]
    warnings = [""] * len(decision.warnings)
    return msgspec.structs.replace(decision, stages=stages, reason="", warnings=warnings)
