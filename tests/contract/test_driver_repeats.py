"""Any acts in any order: to ask for each of them twice, over a restart, is as good as once."""

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
    """Two hosts, one guest, and where it was last prepared to arrive."""

    def __init__(self, rig):
        self.rig = rig
        self.to = {}

    def act(self, name, host, number):
        """Do an act on a host by one of three operations, and give what came of it."""
        driver = self.rig.driver(host)
        operation = f"{name if name in ('spawn', 'rebuild') else 'move'}-{number}"  # An operation is of one kind.
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

    def everything(self):
        """Give what both hosts have."""
        return [self.rig.driver(host).guests() for host in HOSTS]


@pytest.mark.parametrize("rig", [*RIGS])
@given(steps=st.lists(acts, max_size=12))
def test_acts_that_are_asked_for_twice_do_what_they_do_once(rig, steps):
    once, twice = World(RIGS[rig]()), World(RIGS[rig]())
    for name, host, number in steps:
        came = once.act(name, host, number)
        assert twice.act(name, host, number) == came
        twice.rig.restarted(host)
        assert twice.act(name, host, number) == came
        assert twice.everything() == once.everything()
        for rigged in (once, twice):
            assert len({found.uuid for found in rigged.rig.driver(host).guests()}) <= 1
