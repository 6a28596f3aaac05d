"""Fake drivers for tests, and their inputs: guests, scripts and provider trees."""

import random

from roost.compute.drivers.fake.driver import Fake
from roost.compute.drivers.fake.guests import MemoryShelf
from roost.compute.drivers.fake.script import Fault, Script
from roost.compute.providers.provider_tree import ProviderTree
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.work.agent_terms import HostTerms
from roost.model.work.guest import GuestSpec
from tests.support.fleets.worlds import uuid_named

TINY = Flavor(name="tiny", vcpus=1, memory_mb=512, root_gb=1)


def spec_of(name="guest", node="host-a", *, held=None, flavor=TINY, image="cirros", is_on=True, **more):
    """Return the spec of a named guest; ``held`` are its allocations on the root provider of its node."""
    allocations = {uuid_named(node): held} if held else {}
    booted = image if isinstance(image, Image) else Image(id=image)
    return GuestSpec(
        uuid=uuid_named(name),
        node=node,
        name=name,
        flavor=flavor,
        image=booted,
        is_on=is_on,
        **{"allocations": allocations, **more},
    )


def fake_driver(script=None, host="host-a", *, shelf=None, seed=0, terms=None, wait=lambda _: None):
    """Return a started fake driver of a host that never sleeps."""
    driver = Fake(
        script or Script(),
        terms=terms or HostTerms(),
        chance=random.Random(seed),
        shelf=shelf or MemoryShelf(),
        wait=wait,
    )
    driver.start(host)
    return driver


def tree_of(*nodes):
    """Return the provider tree of new nodes: roots without inventory."""
    tree = ProviderTree()
    for node in nodes:
        tree.new_root(node, uuid_named(node), 0)
    return tree


class FakeRig:
    """Hosts with the fake driver that can reach each other."""

    name = "fake"
    can_live_migrate = True

    def __init__(self):
        self._shelf = MemoryShelf()
        self._drivers = {}

    def driver(self, host="host-a"):
        """Return the driver of a host."""
        if host not in self._drivers:
            self._drivers[host] = fake_driver(host=host, shelf=self._shelf)
        return self._drivers[host]

    def restarted(self, host="host-a"):
        """Return the driver of a host after a restart of its agent."""
        self._drivers.pop(host)
        return self.driver(host)

    def failing(self, action, kind, host="host-a"):
        """Return the driver of a host on which the next call of an action fails."""
        script = Script(fault=(Fault(action=action, kind=kind, times=1),))
        self._drivers[host] = fake_driver(script, host, shelf=self._shelf)
        return self._drivers[host]

    def spec(self, name="guest", host="host-a", **more):
        """Return the spec of a guest that the driver of a host can run."""
        return spec_of(name, host, **more)
