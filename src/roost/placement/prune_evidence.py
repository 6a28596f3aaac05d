"""Deletion of old evidence, and creation of snapshots, while no request waits."""

from roost.model.settings import roost_settings
from roost.ports import Clock, Store

# Commits between two prunings: fewer than the rows that one pruning may delete, so pruning keeps up.
PRUNE_EVERY = 1024
_DAY_S = 86_400.0


def prune(store: Store, bounds: roost_settings.Store, *, now_s: float) -> int:
    """Delete some evidence, feed, snapshots and work that exceed the settings; return the number of deleted rows.

    If a snapshot or a column file is due, start it in another process.
    """
    store.start_column_file()
    if bounds.snapshot_every_bytes:
        store.start_snapshot(every_bytes=bounds.snapshot_every_bytes)
    oldest_s = now_s - bounds.evidence_keep_days * _DAY_S
    pruned = store.prune_work(
        older_than_s=oldest_s,
        changes_older_than_s=now_s - bounds.changes_keep_days * _DAY_S,
        changes_max=bounds.changes_max,
    )
    return pruned + store.prune(older_than_s=oldest_s, max_bytes=bounds.evidence_max_bytes)


class Tidier:
    """Prunes after a number of commits.

    Args:
        store: the store; used in its own thread.
        bounds: limits of the stored evidence.
        clock: gives the age of rows.
    """

    def __init__(self, store: Store, bounds: roost_settings.Store, *, clock: Clock) -> None:
        self._store, self._bounds, self._clock = store, bounds, clock
        self._acts = 0

    def __call__(self, accepted: int) -> None:
        """Count commits, and prune when enough have accumulated; start to write a due column file."""
        self._store.start_column_file()
        self._acts += accepted
        if self._acts >= PRUNE_EVERY:
            self._acts = 0
            prune(self._store, self._bounds, now_s=self._clock.now_s())
