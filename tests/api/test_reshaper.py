import threading
import time

import msgspec
import pytest

from roost.model.writes import Refusal
from roost.ports import CommitResult
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import digest, uuid_named
from tests.support.servers.in_process_api import placement_api
from tests.support.servers.placement_records import generation, held, holding, inventories, provider, put, used

HOST, CHILD, FREE, NOT_THERE = map(uuid_named, ("host", "child", "free", "not there"))


@pytest.fixture
def tree(api):
    """A host and a child without inventory. Two GPUs are used by one instance, VCPUs by two."""
    create_tree(api)
    return api


def create_tree(api):
    provider(api, "host", VCPU=8, VGPU=4)
    provider(api, "child", parent="host")
    provider(api, "free", VCPU=2)
    put(api, "server", {"host": {"VCPU": 1, "VGPU": 2}})
    put(api, "other", {"host": {"VCPU": 1}})


def reshape(api, inventories_by_name, allocations_by_name=None, **options):
    """Send a reshape: generation and totals by provider name, allocations by consumer name."""
    body = {
        "inventories": {
            uuid_named(name): {"resource_provider_generation": current, "inventories": inventories(**totals)}
            for name, (current, totals) in inventories_by_name.items()
        },
        "allocations": {uuid_named(name): holding(*each) for name, each in (allocations_by_name or {}).items()},
    }
    return api.post("/reshaper", body, **options)


def dump(api):
    """Return the complete state of the columns and of the database."""
    return api.serving.run(
        lambda current: (digest(current.state), [msgspec.to_builtins(each) for each in current.store.load().writes])
    )


MOVED_INVENTORIES = {"host": (3, {"VCPU": 8}), "child": (0, {"VGPU": 4})}
MOVED_ALLOCATIONS = {"server": ({"host": {"VCPU": 1}, "child": {"VGPU": 2}}, 1)}


@pytest.mark.shows("S108", "S123", "S125")
def test_inventory_moves_to_a_child_with_its_allocations(tree):
    assert reshape(tree, MOVED_INVENTORIES, MOVED_ALLOCATIONS).status == 204
    assert (used(tree, "host"), used(tree, "child")) == ({"VCPU": 2}, {"VGPU": 2})
    assert held(tree, "server")["consumer_generation"] == 2
    assert held(tree, "other")["consumer_generation"] == 1
    # Inventories raise a generation twice, in the middle and at the end; claims raise it once.
    assert (generation(tree, "host"), generation(tree, "child"), generation(tree, "free")) == (6, 3, 1)


def test_generations_rise_twice_with_inventory_and_once_without(tree):
    assert reshape(tree, {"child": (0, {}), "free": (1, {"VCPU": 2})}).status == 204
    assert (generation(tree, "child"), generation(tree, "free")) == (1, 3)
    assert reshape(tree, {"child": (1, {"VGPU": 1})}, {"other": ({}, 1)}).status == 204
    assert (generation(tree, "child"), generation(tree, "host")) == (3, 4)


WRONG = {
    "stale generation": (
        {"host": (2, {"VCPU": 8}), "child": (0, {"VGPU": 4})},
        MOVED_ALLOCATIONS,
        409,
        "placement.concurrent_update",
        f"resource provider generation conflict for provider {HOST}: actual: 3, given: 2",
    ),
    "generation of a consumer": (
        MOVED_INVENTORIES,
        {"server": (MOVED_ALLOCATIONS["server"][0], 5), "new": ({"free": {"VCPU": 1}}, None)},
        409,
        "placement.concurrent_update",
        "consumer generation conflict - expected 1 but got 5",
    ),
    "unknown provider": (
        {"not there": (0, {}), "host": (9, {})},
        {},
        400,
        "placement.resource_provider.not_found",
        (f"Resource provider {NOT_THERE} in inventories not found: No resource provider with uuid {NOT_THERE} found"),
    ),
    "unknown provider of an allocation": (
        {"host": (3, {"CUSTOM_NONE": 1})},
        {"server": ({"not there": {"VCPU": 1}}, 1)},
        400,
        "placement.undefined_code",
        f"Allocation for resource provider '{NOT_THERE}' that does not exist.",
    ),
    "unknown class": (
        {"host": (3, {"VCPU": 8}), "child": (0, {"CUSTOM_NONE": 4})},
        {"server": ({"host": {"VCPU": 99}}, 1)},
        400,
        "placement.undefined_code",
        "malformed reshaper data: No such resource class CUSTOM_NONE.",
    ),
    "unknown class of an allocation": (
        MOVED_INVENTORIES,
        {"server": ({"host": {"CUSTOM_NONE": 1}}, 1)},
        400,
        "placement.undefined_code",
        "malformed reshaper data: No such resource class CUSTOM_NONE.",
    ),
    "capacity": (
        {"host": (3, {"VCPU": 8}), "child": (0, {"VGPU": 1})},
        MOVED_ALLOCATIONS,
        409,
        "placement.undefined_code",
        (
            "Unable to allocate inventory: Unable to create allocation for 'VGPU' on resource provider "
            f"'{CHILD}'. The requested amount would exceed the capacity."
        ),
    ),
    "inventory in use": (
        MOVED_INVENTORIES,
        {"new": ({"child": {"VGPU": 1}}, None)},
        409,
        "placement.inventory.inuse",
        f"update conflict: Inventory for 'VGPU' on resource provider '{HOST}' in use.",
    ),
    "inventory in use at the end": (
        {"host": (3, {}), "free": (1, {"VCPU": 9})},
        {"server": ({"free": {"VCPU": 1}}, 1)},
        409,
        "placement.inventory.inuse",
        f"update conflict: Inventory for 'VCPU' on resource provider '{HOST}' in use.",
    ),
    "reserved": (
        {"free": (1, {"VCPU": {"total": 2, "reserved": 3}})},
        {},
        400,
        "placement.undefined_code",
        (
            f"Unable to update inventory for resource provider {FREE}: Invalid inventory for 'VCPU' on resource "
            f"provider '{FREE}'. The reserved value is greater than total."
        ),
    ),
}


@pytest.mark.shows("S124", "S126", "S127", "S128", "S135")
@pytest.mark.parametrize("case", WRONG)
def test_refused_reshape_changes_nothing(tree, case):
    inventories_by_name, allocations_by_name, status, code, text = WRONG[case]
    before = dump(tree)
    response = reshape(tree, inventories_by_name, allocations_by_name)
    assert (response.status, response.code, response.text) == (status, code, text)
    assert dump(tree) == before


def test_persistent_data_changes_only_if_the_reshape_is_accepted(api_factory):
    with api_factory() as api:
        create_tree(api)
        before = dump(api)
        for inventories_by_name, allocations_by_name, status, _, _ in WRONG.values():
            assert reshape(api, inventories_by_name, allocations_by_name).status == status
        assert dump(api) == before
    with api_factory() as api:
        assert dump(api) == before
        assert reshape(api, MOVED_INVENTORIES, MOVED_ALLOCATIONS).status == 204
        after = dump(api)
    with api_factory() as api:
        assert dump(api)[0] == after[0]
        assert (generation(api, "host"), used(api, "child")) == (6, {"VGPU": 2})


class RacingStore(MemoryStore):
    """A store where another writer wins before every commit, while ``loses_races``."""

    loses_races = False
    tries = 0

    def commit(self, items):
        """See ``Store.commit``."""
        if not self.loses_races:
            return super().commit(items)
        self.tries += 1
        return CommitResult([Refusal("capacity", "inventory")] * len(items), super().commit([]).position)


@pytest.mark.shows("S126")
def test_reshape_that_always_loses_the_race_is_a_conflict():
    store = RacingStore()
    with placement_api(store) as api:
        create_tree(api)
        store.loses_races = True
        answers = [reshape(api, MOVED_INVENTORIES, MOVED_ALLOCATIONS), put(api, "another", {"free": {"VCPU": 1}})]
        assert [(each.status, each.code) for each in answers] == [(409, "placement.concurrent_update")] * 2
        assert answers[0].text == "conflicted with concurrent changes 11 times (capacity inventory); try again"
        assert store.tries == 22
        store.loses_races = False
        assert reshape(api, MOVED_INVENTORIES, MOVED_ALLOCATIONS).status == 204


@pytest.mark.shows("S122")
def test_reshaper_requires_version_1_30(tree):
    assert reshape(tree, {"child": (0, {})}, version="1.29").status == 404
    assert reshape(tree, {"child": (0, {})}, version="1.30").status == 204
    assert reshape(tree, {}).status == 400


@pytest.mark.shows("S109", "S124")
def test_eight_children_take_over_used_devices_during_claims(api):
    provider(api, "host", VCPU=1000, VGPU=16)
    children = [f"child-{number}" for number in range(8)]
    for child in children:
        provider(api, child, parent="host")
    for number in range(16):
        put(api, f"server-{number}", {"host": {"VCPU": 1, "VGPU": 1}})
    stop, statuses = threading.Event(), set()

    def churn(name):
        while not stop.is_set():
            statuses.add(put(api, name, {"host": {"VCPU": 2}}).status)
            statuses.add(api.delete(f"/allocations/{uuid_named(name)}").status)
            time.sleep(0.002)

    clients = [threading.Thread(target=churn, args=(f"client-{number}",)) for number in range(4)]
    for client in clients:
        client.start()
    allocations_by_name = {
        f"server-{number}": ({"host": {"VCPU": 1}, children[number % 8]: {"VGPU": 1}}, 1) for number in range(16)
    }
    try:
        deadline = time.monotonic() + 60
        while True:
            inventories_by_name = {"host": (generation(api, "host"), {"VCPU": 1000})}
            response = reshape(
                api, inventories_by_name | {child: (0, {"VGPU": 2}) for child in children}, allocations_by_name
            )
            if response.status == 204:
                break
            assert response.code == "placement.concurrent_update"  # Another client claimed in between: read again.
            assert time.monotonic() < deadline
    finally:
        stop.set()
        for client in clients:
            client.join()
    assert statuses == {204}
    assert used(api, "host") == {"VCPU": 16}
    assert [used(api, child) for child in children] == [{"VGPU": 2}] * 8


@pytest.mark.shows("S129")
def test_reshape_bodies_are_validated_like_separate_requests(tree):
    inventories_by_name = {"inventories": inventories(VCPU=8, VGPU=4), "resource_provider_generation": 3}
    assert tree.put(f"/resource_providers/{HOST}/inventories", inventories_by_name).status == 200
    allocations_by_name = {uuid_named("server"): holding({"host": {"VCPU": 2, "VGPU": 2}}, 1)}
    assert tree.post("/allocations", allocations_by_name).status == 204
    (
        inventories_by_name["resource_provider_generation"],
        allocations_by_name[uuid_named("server")]["consumer_generation"],
    ) = 5, 2
    assert (
        tree.post("/reshaper", {"inventories": {HOST: inventories_by_name}, "allocations": allocations_by_name}).status
        == 204
    )
    # The reshaper refuses the same bodies.
    for wrong in (
        {"inventories": {}},
        {**inventories_by_name, "more": 1},
        {**inventories_by_name, "resource_provider_generation": "7"},
    ):
        assert tree.put(f"/resource_providers/{HOST}/inventories", wrong).status == 400
        assert tree.post("/reshaper", {"inventories": {HOST: wrong}, "allocations": {}}).status == 400
    for key in ("project_id", "user_id", "consumer_generation"):
        wrong = {
            uuid: {name: value for name, value in each.items() if name != key}
            for uuid, each in allocations_by_name.items()
        }
        assert tree.post("/allocations", wrong).status == 400
        assert tree.post("/reshaper", {"inventories": {}, "allocations": wrong}).status == 400
