"""The present picture of a Nova: its hosts as they must be in the columns, from the changes read so far."""

from collections.abc import Iterable

import msgspec

from roost.engine.columns.host_columns import Hosts
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.nova.database.nova_fleet import ComputeNode, FleetChanges, NovaAggregate, NovaInstance
from roost.observe import log

# A host that must not be chosen counts as disabled, for one of these reasons.
_UNMAPPED = "not mapped to a cell: run nova-manage cell_v2 discover_hosts"
_NOT_READY = "its compute service has not reported yet"
_GONE = "deleted in Nova"
# Seconds until the next attempt to place an instance without a host or allocations: the first pause, which doubles with
# each attempt, and the longest.
_RETRY_S, _RETRY_S_MAX = 10.0, 600.0


class _Wait(msgspec.Struct, frozen=True):
    """An instance without a host or without allocations in the columns."""

    instance: NovaInstance
    due_s: float  # of the next attempt
    pause_s: float  # before it

    def is_due(self, now_s: float) -> bool:
        """Return whether to try again; a clock that was set back does not delay it."""
        return not 0 < self.due_s - now_s <= self.pause_s


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
        self._waiting: dict[str, _Wait] = {}  # by uuid
        self._has_reported = False  # whether the log says that instances wait
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
            due = {uuid: wait.instance for uuid, wait in self._waiting.items() if wait.is_due(now_s)}
            self.due_instances.update(due)
        for instance in changes.instances:
            self._waiting.pop(instance.uuid, None)
            self.due_instances[instance.uuid] = instance
            self.due_departures.pop(instance.uuid, None)
        for uuid in changes.gone_instances:
            self._waiting.pop(uuid, None)
            self.due_instances.pop(uuid, None)
            self.due_departures[uuid] = None
        if not self._keeps_instances:  # With a remote Placement, other parts of all instances are compared.
            for instance in changes.unchanged:
                self.due_instances.setdefault(instance.uuid, instance)
        self._note_end_of_waits()
        self.is_complete = not changes.silent_cells
        if self._keeps_instances:
            self.instances |= {instance.uuid: instance for instance in changes.instances}
            for uuid in changes.gone_instances:
                self.instances.pop(uuid, None)

    def note_attempt(
        self, instances: Iterable[NovaInstance], unplaced: Iterable[NovaInstance], *, now_s: float
    ) -> None:
        """Note an attempt to place instances; those without a place are due again later, less and less often.

        Args:
            instances: all instances of the attempt.
            unplaced: those whose host or whose allocations are not in the columns yet.
            now_s: the present time, seconds since the epoch.
        """
        waits = {}
        for each in unplaced:
            before = self._waiting.get(each.uuid)
            pause_s = _RETRY_S if before is None else min(2 * before.pause_s, _RETRY_S_MAX)
            waits[each.uuid] = _Wait(each, now_s + pause_s, pause_s)
        for each in instances:
            self._waiting.pop(each.uuid, None)
        self._waiting.update(waits)
        repeated = [uuid for uuid, wait in waits.items() if wait.pause_s > _RETRY_S]
        if repeated and not self._has_reported:
            self._has_reported = True
            log.event("nova_instances_wait", count=len(self._waiting), instance=repeated[0])
        self._note_end_of_waits()

    def retry_soon(self) -> None:
        """Let all waiting instances be due at the next time of attempts: there is a new host."""
        self._waiting = {uuid: _Wait(wait.instance, 0.0, _RETRY_S) for uuid, wait in self._waiting.items()}

    def _note_end_of_waits(self) -> None:
        if self._has_reported and not self._waiting:
            self._has_reported = False
            log.event("nova_instances_are_placed")

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
