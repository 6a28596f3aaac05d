"""Consumers of a database with their allocations and instances, added batch by batch."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from roost.engine.columns.state import Holder, State
from roost.engine.columns.types import Amounts, Rows
from roost.engine.fill.table_columns import ClaimColumns
from roost.model.writes import CLASS_BITS, CLASS_MASK, KEPT, ConsumerRow, InstanceRow


class ClaimFill:
    """Adds batches of consumers to a state.

    Args:
        rows_of: returns the rows of providers by their ids.
    """

    def __init__(self, state: State, rows_of: Callable[[Amounts], Rows]) -> None:
        self._state = state
        self._rows_of = rows_of
        # Equal texts and equal takes are one object.
        self._texts: dict[str, str] = {}
        self._takes: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, part: ClaimColumns) -> None:
        """Add a batch of consumers."""
        state, share = self._state, self._texts.setdefault
        instances = {row[0]: InstanceRow(*row) for row in zip(*part.instances, strict=True)}
        ids, uuids, projects, users, *others = part.consumers
        known = (share(each, each) for each in projects), (share(each, each) for each in users)
        rows = map(ConsumerRow, ids, uuids, *known, *others)
        for consumer, takes in zip(rows, self._split_takes(part), strict=True):
            holder = Holder(consumer, takes, instances.get(consumer.id), touched_s=state.now_s)
            state.holders[holder.uuid] = holder
            state.holders_by_id[holder.id] = holder
        self._add_use(part)
        self._count_instances(part)

    def _split_takes(self, part: ClaimColumns) -> list[list[tuple[int, int]]]:
        """Return the takes of each consumer."""
        consumer_ids, inventory_ids, amounts = part.takes
        share = self._takes.setdefault
        takes = [share(take, take) for take in zip(inventory_ids, amounts, strict=True)]
        starts = np.searchsorted(np.array(consumer_ids, dtype=np.int64), np.array(part.consumers[0], dtype=np.int64))
        return [takes[start:end] for start, end in pairwise([*starts.tolist(), len(takes)])]

    def _add_use(self, part: ClaimColumns) -> None:
        _, inventory_ids, taken = part.takes
        ids, amounts = np.array(inventory_ids, dtype=np.int64), np.array(taken, dtype=np.int64)
        rows, class_ids = self._rows_of(ids >> CLASS_BITS), ids & CLASS_MASK
        found, firsts = np.unique(class_ids, return_index=True)
        for class_id in found[np.argsort(firsts)].tolist():  # New classes come in the order of their first use.
            chosen, columns = class_ids == class_id, self._state.inventory(class_id)
            np.add.at(columns.used.data, rows[chosen], amounts[chosen])
            np.subtract.at(columns.free.data, rows[chosen], amounts[chosen])

    def _count_instances(self, part: ClaimColumns) -> None:
        _, host_ids, flavor_ids, _, group_ids, scopes, holders = part.instances
        row_of_id = self._state.hosts.row_of_id
        host_rows = [row_of_id[host_id] for host_id in host_ids]
        is_present = np.array(flavor_ids, dtype=np.int64) != KEPT
        counts = self._state.hosts.columns["num_instances"].data
        np.add.at(counts, np.array(host_rows, dtype=np.intp)[is_present], 1)
        for at, group_id in enumerate(group_ids):
            if not group_id:
                continue
            group, host_row = self._state.groups[group_id], host_rows[at]
            members = group.members if is_present[at] else group.kept
            members[host_row] = members.get(host_row, 0) + 1
            if part.has_place[at]:
                _, before = group.places.get(scopes[at], (holders[at], 0))
                group.places[scopes[at]] = (holders[at], before + 1)
