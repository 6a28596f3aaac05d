"""A host that carries out orders, for tests of their effects."""

from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.tasks import Work
from roost.compute.drivers.fake.script import Fault, Script
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.devices.topology import InstanceCell, InstanceTopology
from roost.model.host import HostFacts
from tests.support.agents.driver_doubles import fake_driver
from tests.support.agents.scripted_agents import HOST, RUN, PlainTracker, order
from tests.support.fleets.devices import pci_pool, pci_request
from tests.support.fleets.worlds import uuid_named

GUEST = uuid_named("guest")
CELLS = NumaTopology(cells=(NumaCell(id=0, pcpus=(0, 1, 2, 3), cpus=(0, 1, 2, 3), memory_mb=4096),))
CARD = {"pci": (pci_request(count=1),)}


class Host:
    """A host with two devices and one memory node."""

    def __init__(self, driver=None, journal=None, name=HOST):
        self.driver, self.journal = driver or fake_driver(host=name), journal or Journal(None)
        facts = HostFacts(pci_pools=(pci_pool(count=2),), numa=CELLS)
        self.tracker = PlainTracker(self.driver, self.journal, facts=facts)
        self.tracker.update(name, is_startup=True)
        self.executor = OrderExecutor(name, run=RUN, driver=self.driver, journal=self.journal, use_of=self.tracker.use)

    def do(self, act, number=1, *, is_resumed=False, **more):
        """Carry out an order, and return its answer."""
        return self.executor.carry_out(Work(order(act, number, **more), is_resumed))

    @property
    def free(self):
        """The number of free devices."""
        return self.tracker.use(HOST).facts.pci_pools[0].count


def failing_host(action, kind, **more):
    """Return a host on which the first call of an action fails."""
    return Host(fake_driver(Script(fault=(Fault(action=action, kind=kind, times=1, **more),)), HOST))


def pinned_guest(*numbers, **more):
    """Return the arguments of a guest with dedicated processors."""
    cell = InstanceCell(id=0, pcpus=frozenset(numbers), memory_mb=64, policy="dedicated", **more)
    return {"topology": InstanceTopology(cells=(cell,))}


def pinned_cpus_on(host):
    """Return the processors that are pinned to guests."""
    return host.tracker.use(HOST).facts.numa.cells[0].pinned_cpus
