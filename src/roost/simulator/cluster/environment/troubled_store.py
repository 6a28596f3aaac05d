"""A store in memory whose commits may fail, and which can be restored from a backup."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from roost.model.work.work_rows import AgentRow, LeaseRow, OperationRow
from roost.model.writes import Item
from roost.ports import CommitResult
from roost.store.backup import forget_registration, renew_operation, restore_lease
from roost.store.memory_store import MemoryStore


class Backup(NamedTuple):
    """All rows of one moment."""

    rows: Mapping[str, Sequence[Any]]  # by the name of their table
    made_at_s: float


class TroubledStore(MemoryStore):
    """A store with a hook before and after each commit; a hook may raise an error or kill the process."""

    def __init__(self) -> None:
        super().__init__()
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def commit(self, items: Sequence[Item]) -> CommitResult:
        """Commit items, as ``Store.commit``."""
        self.before()
        committed = super().commit(items)
        self.after()
        return committed

    def backup(self, *, now_s: float) -> Backup:
        """Return all present rows."""
        return Backup({name: [*table.rows.values()] for name, table in self.tables.by_name().items()}, now_s)

    def restore(self, backup: Backup, *, now_s: float, new_uuid: Callable[[], bytes]) -> None:
        """Replace all rows by those of a backup, as ``roost db restore``; no server may use the store meanwhile."""
        for name, table in self.tables.by_name().items():
            for key in [*table.rows]:
                table.forget(key)
            for row in backup.rows[name]:
                match row:
                    case AgentRow():
                        table.fill(forget_registration(row))
                    case OperationRow():
                        table.fill(renew_operation(row, uuid=new_uuid(), delay_s=now_s - backup.made_at_s))
                    case _:
                        table.fill(row)
        self.tables.work[LeaseRow].fill(restore_lease(now_s))
