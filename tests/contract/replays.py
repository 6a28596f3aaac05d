"""Replay stored decisions, and count how they ended."""

from collections import Counter

from roost.app import Roost
from roost.errors import StateLost
from tests.contract.stores import SHARED

# The problem of a decision whose state was never stored: see docs/decisions/0016.
LOST_RACE = "it saw claims that then lost a race against another process"


def keep_no_feed(monkeypatch) -> None:
    """Let pruning delete changes at once."""
    for module in SHARED:
        monkeypatch.setattr(f"roost.store.{module}.store._FEED_KEPT_S", 0)


def replay_all(roost: Roost, uuids: list[str]) -> Counter[str]:
    """Assert that each replay equals its stored decision; count outcomes and lost states."""
    counts = Counter[str]()
    for uuid in uuids:
        try:
            found = roost.replay(uuid)
        except StateLost as error:
            counts[error.problem] += 1
            continue
        assert found.is_same, (found.fields, found.stored, found.again)
        assert found.differences == []
        texts = [(each.reason, each.stages, each.warnings) for each in (found.stored, found.again)]
        assert texts[0] == texts[1]  # Equal within one version; replays do not compare texts.
        counts[found.stored.outcome] += 1
    return counts
