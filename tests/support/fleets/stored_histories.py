"""Random write histories in a database, and the whole content of a state for comparison."""

from random import Random
from typing import Any

from roost.engine.columns.column import Column, RowSet
from roost.engine.columns.state import Group, Holder, State
from roost.model import writes
from roost.model.host import HostFacts, PciPool
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.ports import Store
from tests.support.conductors.work_rows import status
from tests.support.fleets.state_histories import History, new_state

_FACTS = (
    HostFacts(num_io_ops=3),
    HostFacts(rack="r1", cell="c1", vcpus_total=7, cpu_allocation_ratio=2.5),
    HostFacts(rack="r2", memory_mb=0, local_gb=9, failed_builds=2, hypervisor_version=4001000),
    HostFacts(rack="r1", pci_pools=(PciPool(vendor_id="8086", product_id="a", count=3),), stats={"a": "b"}),
)
# Counters of changes, and caches; they need not be equal.
_IGNORED = frozenset({"changes", "check", "consumer_index", "facts_version", "inventory_version", "shared_version"})


class StoredHistory(History):
    """A history in a database. A write that the database refuses is skipped."""

    def __init__(self, store: Store, random: Random) -> None:
        super().__init__(new_state(), random)
        self._store = store
        named = self.state
        for kind in ("resource_class", "trait"):
            for number, name in sorted((number, name) for name, number in _numbers(named, kind).items()):
                self._commit(writes.PutSymbol(kind, number, name))
        for number in sorted(named.aggregate_names):
            self._commit(writes.PutAggregate(number, bytes([number]) * 16, named.aggregate_names[number], {}, 0))
        for group in named.groups.values():
            uuid = bytes.fromhex(group.uuid.replace("-", ""))
            self._commit(writes.PutGroup(group.id, uuid, group.name, group.policy, group.limit))

    def facts(self) -> HostFacts:
        """Return the facts of a new host."""
        return self.random.choice(_FACTS)

    def apply(self, write: writes.Write) -> None:
        """Commit a write, and apply it if it was accepted."""
        if self._commit(write):
            super().apply(write)
            if isinstance(write, writes.Claim) and write.instances and self.random.random() < 0.5:
                self._begin_task(write)

    def _commit(self, write: writes.Write) -> bool:
        return self._store.commit([Item((write,))]).refusals == [None]

    def _begin_task(self, claim: writes.Claim) -> None:
        """Store the status of an instance with an I/O task."""
        uuid = {each.id: each.uuid for each in claim.consumers}[claim.instances[0].consumer_id]
        task = writes.PutTask(uuid, is_io=True)
        row = status(self.number(), uuid=uuid, task="spawning")
        assert self._store.commit([Item((task,), work=(Put(row, None),))]).refusals == [None]
        super().apply(task)


def _numbers(state: State, kind: str) -> dict[str, int]:
    table = state.name_table(kind)
    return {name: number for name in table if (number := table.id_of(name)) is not None}


def whole_content(state: State) -> dict[str, Any]:
    """Return all fields of a state as comparable values, without its change counters and caches."""
    found = {name: _plain(getattr(state, name)) for name in State.__slots__ if not _is_ignored(name)}
    # A state that was filled has no entry for generation 0. It orders contents in the same way.
    found["content_versions"] = {key: version for key, version in state.content_versions.items() if version}
    return found


def _is_ignored(name: str) -> bool:
    return name in _IGNORED or name.startswith("_") or name.endswith("version")


def _plain(value: object) -> object:
    match value:
        case Column():
            return value.view.tolist()
        case RowSet():
            return list(value)
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case Holder() | Group():
            return {name: _plain(getattr(value, name)) for name in value.__slots__}
        case tuple():
            return [_plain(each) for each in value]
        case list() | set():
            return value
        case _:
            slots = getattr(value, "__slots__", None)
            if slots is None or isinstance(value, HostFacts | str | bytes):
                return value
            inside = {name: _plain(getattr(value, name)) for name in slots if not _is_ignored(name)}
            return inside | {name: _plain(getattr(value, name)) for name in ("_columns", "_rare") if name in slots}
