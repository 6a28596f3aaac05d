"""Hosts with instances that plans move."""

from msgspec.structs import replace

from roost.model.flavor import Flavor
from roost.model.request import Destination, Move, Request, ResourceGroup
from roost.scheduler.plans.board import Resident
from tests.support.fleets.worlds import host, merge_fleets, roost_on


def request(vcpus, resources=None, **more):
    """Return a request for an instance with some VCPU and 1 MiB, and with further resources."""
    groups = () if resources is None else (ResourceGroup(suffix="_more", resources=resources),)
    return Request(flavor=Flavor(name="f", vcpus=vcpus, memory_mb=1), groups=groups, **more)


class MovableInstances:
    """A Roost with hosts, and movable instances on them by name.

    Args:
        fleets: further hosts, groups and aggregates.
        settings: rules and options; None: defaults.
        vcpus: VCPU of each host by name; each has 100 MiB, too.
    """

    def __init__(self, *fleets, settings=None, **vcpus):
        self.roost = roost_on(settings=settings)
        plain = (host(name, VCPU=total, MEMORY_MB=100) for name, total in vcpus.items())
        self.roost.install(merge_fleets(*plain, *fleets))
        self._residents = {name: [] for name in self.roost.state.hosts.names}

    def residents(self, name):
        """Return the movable instances of a host."""
        return self._residents[name]

    def add(self, name, on, vcpus, how="live_migrate", **more):
        """Place an instance; ``how`` None: it cannot move."""
        wish = request(vcpus, **more)
        uuid = self.roost.decide(replace(wish, destination=Destination(host=on))).picks[0].instance_uuid
        move = replace(wish, instance_uuids=(uuid,), ignore_hosts=(on,), move=Move(instance_uuid=uuid))
        if how is not None:
            self._residents[on].append(Resident(uuid, name, how, None if how == "offload" else move))
