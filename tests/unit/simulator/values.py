"""Builders of test values from the relevant fields only."""

from roost.model.flavor import Flavor
from roost.model.request import Request


def request(*uuids, vcpus=0, memory_mb=0, **facts):
    flavor = Flavor(name=f"{vcpus}c", vcpus=vcpus, memory_mb=memory_mb)
    return Request(flavor=flavor, count=len(uuids), instance_uuids=uuids, **facts)
