"""Old evidence goes, and snapshots are made, while nobody waits for it."""

from roost.model.settings import roost_settings
from roost.ports import Clock, Store

# Old evidence is looked for after so many acts: fewer than the rows that one look may delete, so it keeps up.
PRUNE_EVERY = 1024
_DAY_S = 86_400.0


def prune(store: Store, bounds: roost_settings.Store, *, now_s: float) -> int:
    """Delete evidence, feed, snapshots and work beyond the bounds of the settings, a part of it; return how many rows.

    A snapshot is begun beside this process where one is due.
    """
    if bounds.snapshot_every_bytes:
        store.start_snapshot(every_bytes=bounds.snapshot_every_bytes)
    oldest_s = now_s - bounds.evidence_keep_days * _DAY_S
    pruned = store.prune_work(older_than_s=oldest_s)
    return pruned + store.prune(older_than_s=oldest_s, max_bytes=bounds.evidence_max_bytes)


class Tidier:
    """Prunes after every so many commits.

    Args:
        store: what is tidied, by the thread that uses it.
        bounds: how much is kept.
        clock: tells how old things are.
    """

    def __init__(self, store: Store, bounds: roost_settings.Store, *, clock: Clock) -> None:
        self._store, self._bounds, self._clock = store, bounds, clock
        self._acts = 0

    def __call__(self, accepted: int) -> None:
        """Hear of commits."""
        self._acts += accepted
        if self._acts >= PRUNE_EVERY:
            self._acts = 0
            prune(self._store, self._bounds, now_s=self._clock.now_s())
