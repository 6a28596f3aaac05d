"""The present picture of a Nova: its hosts as they must be in the columns, from the changes read so far."""

from collections.abc import Iterable

import msgspec

from roost.engine.columns.host_columns import Hosts
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.nova.database.nova_fleet import ComputeNode, FleetChanges, NovaAggregate, NovaInstance

# A host that must not be chosen counts as disabled, for one of these reasons.
_UNMAPPED = "not mapped to a cell: run nova-manage cell_v2 discover_hosts"
_NOT_READY = "its compute service has not reported yet"
_GONE = "deleted in Nova"
# Seconds between two attempts to place instances that were read before their host or their allocations.
_RETRY_S = 10.0


class NovaPicture:
    """Collects the changes of a Nova, until they are written to the columns.

    Args:
        keeps_instances: whether to keep all instances for comparisons.
    """

    def __init__(self, *, keeps_instances: bool = False) -> None:
        self._keeps_instances = keeps_instances
        self.instances: dict[str, NovaInstance] = {}  # by uuid, if they are kept
        self.is_complete = False  # whether all cells answered the last reading
        self.due_departures: dict[str, None] = {}  # uuids of instances that are on no host any more
        self._nodes: dict[str, ComputeNode] = {}  # by uuid
        self._gone: dict[str, None] = {}  # uuids of deleted nodes
        self._silent_since: dict[str, float] = {}  # by cell
        self.due_nodes: dict[str, None] = {}  # uuids of nodes to compare with the columns
        self.due_aggregates: dict[str, Aggregate] = {}  # by uuid
        self.due_instances: dict[str, NovaInstance] = {}  # by uuid
        self._aggregates: set[str] = set()
        self._waiting: dict[str, NovaInstance] = {}  # by uuid, without a host or allocations in the columns
        self._retried_at_s = 0.0

    def add(self, changes: FleetChanges, *, now_s: float) -> None:
        """Add the changes of one reading.

        Args:
            changes: the changes.
            now_s: the present time, seconds since the epoch.
        """
        for node in changes.computes:
            self._nodes[node.uuid] = node
            self._gone.pop(node.uuid, None)
            self.due_nodes[node.uuid] = None
        for uuid in changes.gone:
            self._nodes.pop(uuid, None)
            self._gone[uuid] = None
            self.due_nodes[uuid] = None
        self._note_silence(changes.silent_cells, now_s=now_s)
        if changes.aggregates is not None:
            self._note_aggregates(changes.aggregates)
        if abs(now_s - self._retried_at_s) >= _RETRY_S:
            self._retried_at_s = now_s
            self.due_instances.update(self._waiting)
            self._waiting.clear()
        for instance in changes.instances:
            self._waiting.pop(instance.uuid, None)
            self.due_instances[instance.uuid] = instance
            self.due_departures.pop(instance.uuid, None)
        for uuid in changes.gone_instances:
            self._waiting.pop(uuid, None)
            self.due_instances.pop(uuid, None)
            self.due_departures[uuid] = None
        if not self._keeps_instances:  # A remote Placement: ``find_differences`` compares them.
            for instance in changes.unchanged:
                self.due_instances.setdefault(instance.uuid, instance)
        self.is_complete = not changes.silent_cells
        if self._keeps_instances:
            self.instances |= {instance.uuid: instance for instance in changes.instances}
            for uuid in changes.gone_instances:
                self.instances.pop(uuid, None)

    def wait_for_hosts(self, instances: Iterable[NovaInstance]) -> None:
        """Let instances be due again later: their host or their allocations are not in the columns yet."""
        self._waiting.update({each.uuid: each for each in instances})

    def host_of(self, uuid: str) -> HostSpec | None:
        """Return a node as a host; None: it is unknown, or must not be registered."""
        node = self._nodes.get(uuid)
        return (
            None
            if node is None
            else HostSpec(provider_uuid=uuid, host=node.host, node=node.node, facts=self._facts(node))
        )

    def host_after_deletion(self, uuid: str, hosts: Hosts, row: int) -> HostSpec | None:
        """Return the host of a deleted node, disabled; None: the node was not deleted."""
        if uuid not in self._gone:
            return None
        facts = _disable(hosts.facts[row], _GONE)
        return HostSpec(provider_uuid=uuid, host=hosts.names[row], node=hosts.nodes[row], facts=facts)

    def is_usable(self, uuid: str) -> bool:
        """Return whether a node may become a host."""
        node = self._nodes.get(uuid)
        return node is not None and node.is_mapped and node.is_ready

    def _facts(self, node: ComputeNode) -> HostFacts:
        facts = msgspec.structs.replace(node.facts, cell=node.cell)
        if not node.is_mapped:
            return _disable(facts, _UNMAPPED)
        if not node.is_ready:
            return _disable(facts, _NOT_READY)
        silent_s = self._silent_since.get(node.cell)
        if silent_s is not None and facts.reported_at_s is None:
            return msgspec.structs.replace(facts, reported_at_s=silent_s)
        return facts

    def _note_silence(self, cells: Iterable[str], *, now_s: float) -> None:
        """Note since when cells do not answer; the hosts of a cell that changes its state are due."""
        silent = {cell: self._silent_since.get(cell, now_s) for cell in cells}
        changed = silent.keys() ^ self._silent_since.keys()
        self._silent_since = silent
        if changed:
            self.due_nodes.update(dict.fromkeys(uuid for uuid, node in self._nodes.items() if node.cell in changed))

    def _note_aggregates(self, aggregates: Iterable[NovaAggregate]) -> None:
        present = {each.uuid: Aggregate(uuid=each.uuid, name=each.name, metadata=each.metadata) for each in aggregates}
        self.due_aggregates.update({uuid: Aggregate(uuid=uuid) for uuid in self._aggregates - present.keys()})
        self.due_aggregates.update(present)
        self._aggregates = set(present)


def _disable(facts: HostFacts, reason: str) -> HostFacts:
    return msgspec.structs.replace(facts, is_disabled=True, disabled_reason=reason)
