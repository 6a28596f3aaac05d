"""Allocations in the JSON format of the Placement API. A driver edits them in place when it reshapes."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from roost.errors import BadRequest

Amounts = Mapping[str, Mapping[str, int]]  # provider uuid -> resource class -> amount


class Holding(TypedDict):
    """A consumer's allocations on one provider."""

    resources: dict[str, int]  # by resource class
    generation: NotRequired[int]  # of the provider when it was read


class ConsumerRecord(TypedDict):
    """All allocations of a consumer."""

    allocations: dict[str, Holding]  # by provider uuid
    project_id: str
    user_id: str
    consumer_generation: int | None  # None: it is new


Allocations = dict[str, ConsumerRecord]  # by consumer uuid


def amounts_of(holdings: Mapping[str, Holding]) -> dict[str, dict[str, int]]:
    """Return non-empty allocations as amounts by provider and class."""
    return {uuid: {**each["resources"]} for uuid, each in holdings.items() if each["resources"]}


def holdings_of(amounts: Amounts) -> dict[str, Holding]:
    """Return non-empty amounts in the form of a request."""
    return {uuid: Holding(resources={**each}) for uuid, each in amounts.items() if each}


def merge_ends(old: Amounts, new: Amounts) -> dict[str, dict[str, int]]:
    """Return the allocations of both ends of a move: all old ones, and the new ones on other providers.

    >>> merge_ends({"a": {"VCPU": 1}}, {"a": {"VCPU": 2}, "b": {"VCPU": 2}})
    {'a': {'VCPU': 1}, 'b': {'VCPU': 2}}
    """
    found = {uuid: {**each} for uuid, each in old.items()}
    for uuid, each in new.items():
        found.setdefault(uuid, {**each})
    return found


def add(old: Amounts, amounts: Amounts) -> dict[str, dict[str, int]]:
    """Return the sums of two sets of amounts.

    >>> add({"a": {"VCPU": 1}}, {"a": {"VCPU": 2}, "b": {"VCPU": 4}})
    {'a': {'VCPU': 3}, 'b': {'VCPU': 4}}
    """
    found = {uuid: {**each} for uuid, each in old.items()}
    for uuid, each in amounts.items():
        held = found.setdefault(uuid, {})
        for resource_class, amount in each.items():
            held[resource_class] = held.get(resource_class, 0) + amount
    return found


def subtract(old: Amounts, amounts: Amounts) -> dict[str, dict[str, int]]:
    """Return the differences of two sets of amounts, without zeros.

    Raises:
        BadRequest: a difference would be negative.

    >>> subtract({"a": {"VCPU": 3}, "b": {"VCPU": 4}}, {"a": {"VCPU": 2}, "b": {"VCPU": 4}})
    {'a': {'VCPU': 1}}
    """
    found = {uuid: {**each} for uuid, each in old.items()}
    for uuid, each in amounts.items():
        for resource_class, amount in each.items():
            held = found.get(uuid, {}).get(resource_class, 0)
            if amount > held or not held:
                raise BadRequest(f"{amount} {resource_class} of provider {uuid} cannot be released: {held} are held")
            found[uuid][resource_class] = held - amount
    remaining = {
        uuid: {resource_class: amount for resource_class, amount in each.items() if amount}
        for uuid, each in found.items()
    }
    return {uuid: each for uuid, each in remaining.items() if each}
