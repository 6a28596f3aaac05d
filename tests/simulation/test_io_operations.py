"""The I/O operations of hosts in simulated deployments with faults: server columns against database rows."""

from collections import Counter

import pytest

from roost.model.work.operation import IO_TASKS
from roost.model.work.work_rows import StatusRow
from roost.simulator.cluster.invariants import InvariantChecker
from roost.simulator.cluster.simulation import Simulation

SEEDS = (12, 44, 47, 82, 118, 127)


def count_in_rows(tables):
    """Count the instances with an I/O task on each host from the database rows."""
    uuids = {row.uuid for row in tables.work[StatusRow].rows.values() if row.task in IO_TASKS}
    found = Counter()
    for consumer in tables.consumers.rows.values():
        instance = tables.instances.get(consumer.id)
        if instance is not None and consumer.uuid in uuids:
            found[instance.host_id] += 1
    return found


def count_in_columns(process):
    """Return the I/O operations of each host in a server's columns, after a refresh."""
    process.roost.placement.refresh()
    hosts = process.roost.state.hosts
    counts = hosts.column("num_io_ops").astype(int).tolist()
    return Counter({number: count for number, count in zip(hosts.ids, counts, strict=True) if count})


class ColumnChecker(InvariantChecker):
    """Also checks the columns of the server after each event, if there is only one server."""

    def __init__(self, world):
        super().__init__(world)
        self.world, self.most = world, 0

    def check(self):
        """Check the invariants and the columns."""
        super().check()
        for process in self.world.processes if self.world.is_single else ():
            if process.is_up:
                found = count_in_columns(process)
                assert found == count_in_rows(self.world.store.tables)
                self.most = max(self.most, found.total())


@pytest.mark.parametrize("seed", SEEDS)
def test_io_ops_columns_match_database_rows(seed):
    run = Simulation(seed)
    world = run.world
    run.invariants = ColumnChecker(world)
    result = run.run()
    assert not result.invariant
    for process in world.processes:
        if process.is_up:
            assert count_in_columns(process) == count_in_rows(world.store.tables)
    assert run.invariants.most > 0 or not world.is_single
