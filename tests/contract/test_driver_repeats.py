"""Driver acts are idempotent: any sequence gives the same result when each act is repeated, also after a restart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.errors import RoostError
from roost.model.work.guest import TransferTarget
from tests.support.agents.driver_doubles import FakeRig
from tests.support.agents.libvirt_hosts import LibvirtRig
from tests.support.fleets.worlds import uuid_named

RIGS = {rig.name: rig for rig in (FakeRig, LibvirtRig)}
HOSTS = ("host-a", "host-b")
GUEST = uuid_named("guest")

NAMES = (
    "spawn",
    "destroy",
    "start",
    "stop",
    "rebuild",
    "prepare",
    "send_disk",
    "finish",
    "discard",
    "settle",
    "live_migrate",
    "save",
)
acts = st.tuples(st.sampled_from(NAMES), st.sampled_from(HOSTS), st.integers(0, 2))


class World:
    """Two hosts, one guest, and its transfer targets."""

    def __init__(self, rig):
        self.rig = rig
        self.to = {}

    def act(self, name, host, number):
        """Run an act on a host for one of three operations; return its result or error type."""
        driver = self.rig.driver(host)
        operation = f"{name if name in ('spawn', 'rebuild') else 'move'}-{number}"  # Each operation has one kind.
        spec = self.rig.spec(host=host)
        other = HOSTS[1 - HOSTS.index(host)]
        to = self.to.get(other, TransferTarget(uuid=GUEST, node=other, address="nowhere"))
        calls = {
            "spawn": lambda: driver.spawn(spec, operation),
            "destroy": lambda: driver.destroy(GUEST, operation),
            "start": lambda: driver.power(GUEST, is_on=True),
            "stop": lambda: driver.power(GUEST, is_on=False),
            "rebuild": lambda: driver.rebuild(spec, operation),
            "prepare": lambda: self.to.update({host: driver.prepare(spec, operation)}),
            "send_disk": lambda: driver.send_disk(GUEST, to),
            "finish": lambda: driver.finish(spec, operation),
            "discard": lambda: driver.discard(GUEST, operation),
            "settle": lambda: driver.settle(GUEST, operation),
            "live_migrate": lambda: driver.live_migrate(GUEST, to),
            "save": lambda: driver.save(GUEST),
        }
        try:
            return calls[name]()
        except RoostError as error:
            return type(error)

    def guests(self):
        """Return the guests of both hosts."""
        return [self.rig.driver(host).guests() for host in HOSTS]


@pytest.mark.parametrize("rig", [*RIGS])
@given(steps=st.lists(acts, max_size=12))
def test_repeated_acts_have_the_effect_of_one(rig, steps):
    once, twice = World(RIGS[rig]()), World(RIGS[rig]())
    for name, host, number in steps:
        result = once.act(name, host, number)
        assert twice.act(name, host, number) == result
        twice.rig.restarted(host)
        assert twice.act(name, host, number) == result
        assert twice.guests() == once.guests()
        for world in (once, twice):
            assert len({found.uuid for found in world.rig.driver(host).guests()}) <= 1
