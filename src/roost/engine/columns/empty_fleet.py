"""A fleet without consumers, to decide whether a request could ever fit."""

import copy

import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.host_columns import USED, Hosts
from roost.engine.columns.inventory_columns import ClassColumns
from roost.engine.columns.state import Group, State
from roost.engine.columns.types import NO_INVENTORY


def empty_fleet(state: State) -> State:
    """Copy a state without its consumers, for reading and forking only; valid until ``state`` changes.

    Columns independent of use (trees, labels, totals, facts) are shared with ``state``.
    """
    bare = copy.copy(state)
    bare.classes = {class_id: _empty_class(columns) for class_id, columns in state.classes.items()}
    bare.hosts = _empty_hosts(state.hosts)
    bare.holders, bare.holders_by_id = {}, {}
    bare.groups = {group_id: empty_group(group) for group_id, group in state.groups.items()}
    bare.groups_by_uuid = {group.uuid: group for group in bare.groups.values()}
    moved = {id(column): bare.hosts.columns[name] for name, column in state.hosts.columns.items()}
    bare.counted = {
        class_id: (moved[id(used)], moved[id(free)], factor) for class_id, (used, free, factor) in state.counted.items()
    }
    bare.reset_derived()
    return bare


def empty_group(group: Group) -> Group:
    """Copy a server group without its members."""
    return Group(group_id=group.id, uuid=group.uuid, policy=group.policy, limit=group.limit)


def _empty_class(columns: ClassColumns) -> ClassColumns:
    bare = copy.copy(columns)
    bare.used = Column(np.int64, rows=len(columns.used))
    bare.free = columns.free.fork()
    np.copyto(bare.free.data[: len(columns.free)], columns.capacity.view)
    bare.free.data[: len(columns.free)][columns.total.view == 0] = NO_INVENTORY
    return bare


def _empty_hosts(hosts: Hosts) -> Hosts:
    bare = copy.copy(hosts)
    bare.columns = {name: column.fork() for name, column in hosts.columns.items()}
    for name in USED:
        bare.columns[name].fill(0, 0.0)
    bare.update_all_derived()
    return bare
