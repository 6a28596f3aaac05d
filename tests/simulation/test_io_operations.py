"""I/O operations of hosts in whole deployments with faults: what servers count, against the rows of their database."""

from collections import Counter

import pytest

from roost.model.work.operation import IO_TASKS
from roost.model.work.work_rows import StatusRow
from roost.simulator.cluster.invariants import InvariantChecker
from roost.simulator.cluster.simulation import Simulation

SEEDS = (12, 44, 47, 82, 118, 127)


def expected(shelves):
    """Count them from the rows: instances on each host with such a task."""
    uuids = {row.uuid for row in shelves.work[StatusRow].rows.values() if row.task in IO_TASKS}
    found = Counter()
    for consumer in shelves.consumers.rows.values():
        instance = shelves.instances.get(consumer.id)
        if instance is not None and consumer.uuid in uuids:
            found[instance.host_id] += 1
    return found


def counted(process):
    """Return what a server counts when it has read all."""
    process.roost.placement.refresh()
    hosts = process.roost.state.hosts
    counts = hosts.column("num_io_ops").astype(int).tolist()
    return Counter({number: count for number, count in zip(hosts.ids, counts, strict=True) if count})


class Watched(InvariantChecker):
    """Looks at the columns of a server that is alone after each event."""

    def __init__(self, world):
        super().__init__(world)
        self.world, self.most = world, 0

    def check(self):
        """Look."""
        super().check()
        for process in self.world.processes if self.world.is_single else ():
            if process.is_up:
                found = counted(process)
                assert found == expected(self.world.store.shelves)
                self.most = max(self.most, found.total())


@pytest.mark.parametrize("seed", SEEDS)
def test_servers_count_the_operations_that_the_rows_have(seed):
    run = Simulation(seed)
    world = run.world
    run.invariants = Watched(world)
    result = run.run()
    assert not result.invariant
    for process in world.processes:
        if process.is_up:
            assert counted(process) == expected(world.store.shelves)
    assert run.invariants.most > 0 or not world.is_single
