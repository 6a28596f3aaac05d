"""The cached responses of a running server equal those of a freshly started one."""

import json
import uuid
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.placement.current import Current
from roost.store.memory_store import MemoryStore
from tests.support.servers.candidate_urls import Columns
from tests.support.servers.in_process_api import placement_api

pytestmark = pytest.mark.long

CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_A", "CUSTOM_B")
TRAITS = ("CUSTOM_T", "HW_CPU_X86_AVX2", "MISC_SHARES_VIA_AGGREGATE")
UUIDS = [str(uuid.UUID(int=number)) for number in range(1, 5)]  # providers that are created, deleted and created again
AGGREGATES = [str(uuid.UUID(int=number)) for number in range(101, 104)]
CONSUMERS = [str(uuid.UUID(int=number)) for number in range(201, 207)]
READS = (
    "/resource_providers",
    "/usages?project_id=p",
    "/traits?associated=true",
    "/resource_classes",
    *(f"/resource_providers/{each}{part}" for each in UUIDS[:3] for part in ("", "/allocations", "/inventories")),
    *(f"/allocations/{each}" for each in CONSUMERS[:2]),
    "/resource_providers?required=CUSTOM_T&resources=VCPU:2",
    f"/resource_providers?in_tree={UUIDS[0]}",
    "/allocation_candidates?resources=VCPU:1",
    "/allocation_candidates?resources=VCPU:2,CUSTOM_A:1",
    "/allocation_candidates?resources=VCPU:1&required=CUSTOM_T",
    f"/allocation_candidates?resources=VCPU:1&member_of={AGGREGATES[0]}",
    f"/allocation_candidates?resources=VCPU:1&resources1=VCPU:2&in_tree={UUIDS[0]}",
    "/allocation_candidates?resources1=VCPU:1&resources2=VCPU:2&group_policy=none",
    "/allocation_candidates?resources1=CUSTOM_A:1&resources2=CUSTOM_A:1&group_policy=isolate",
    "/allocation_candidates?resources1=CUSTOM_A:1&resources2=CUSTOM_A:2&resources=VCPU:1&group_policy=none&limit=3",
    "/allocation_candidates?resources1=CUSTOM_A:1&resources2=CUSTOM_B:1&group_policy=none&same_subtree=1,2",
)


class Client:
    """Sends random writes of all kinds; many are refused."""

    def __init__(self, api, random: Random) -> None:
        self.api, self.random = api, random
        self._parents = (None, *random.choice(((), UUIDS)))
        self._is_busy = False  # whether only consumers change

    def write(self) -> None:
        """Send one random write."""
        if self.random.random() < 0.1:
            self._is_busy = not self._is_busy
        consumer_writes = (self.claim, self.claim, self.end)
        others = (
            self.create,
            self.create,
            self.set_inventories,
            self.set_inventories,
            self.set_traits,
            self.set_aggregates,
            self.move,
            self.remove,
            self.reshape,
            self.rename_class,
        )
        kinds = consumer_writes if self._is_busy else (*consumer_writes, *others)
        self.random.choice(kinds)()

    def create(self) -> None:
        """Create a provider, possibly as a child."""
        parent = self.random.choice(self._parents)
        body = {"name": f"n{self.random.randint(1, 9)}", "uuid": self.random.choice(UUIDS)}
        self.api.post("/resource_providers", body if parent is None else body | {"parent_provider_uuid": parent})

    def move(self) -> None:
        """Rename a provider or change its parent."""
        body = {"name": f"n{self.random.randint(1, 9)}", "parent_provider_uuid": self.random.choice(self._parents)}
        self.api.put(f"/resource_providers/{self.random.choice(UUIDS)}", body)

    def remove(self) -> None:
        """Delete a provider."""
        self.api.delete(f"/resource_providers/{self.random.choice(UUIDS)}")

    def _inventories(self) -> dict:
        chosen = self.random.sample(CLASSES, self.random.randint(1, 3))
        return {name: {"total": self.random.randint(2, 6), "max_unit": self.random.randint(1, 6)} for name in chosen}

    def _generation(self, uuid_text: str) -> int:
        shown = self.api.get(f"/resource_providers/{uuid_text}").json
        return shown.get("generation", 0)

    def set_inventories(self) -> None:
        """Replace the inventories of a provider."""
        uuid_text = self.random.choice(UUIDS)
        body = {"resource_provider_generation": self._generation(uuid_text), "inventories": self._inventories()}
        self.api.put(f"/resource_providers/{uuid_text}/inventories", body)

    def set_traits(self) -> None:
        """Replace the traits of a provider."""
        uuid_text, traits = self.random.choice(UUIDS), self.random.sample(TRAITS, self.random.choice((0, 1, 1, 2)))
        if self.random.random() < 0.5:  # With a sharing provider, most responses are not cached.
            traits = [each for each in traits if each != TRAITS[-1]]
        body = {"resource_provider_generation": self._generation(uuid_text), "traits": traits}
        self.api.put(f"/resource_providers/{uuid_text}/traits", body)

    def set_aggregates(self) -> None:
        """Replace the aggregates of a provider."""
        aggregates = self.random.sample(AGGREGATES, self.random.randint(0, 2))
        self.api.put(f"/resource_providers/{self.random.choice(UUIDS)}/aggregates", aggregates, version="1.18")

    def _allocations(self) -> dict:
        return {
            provider: {"resources": {self.random.choice(offered): self.random.randint(1, 3)}}
            for provider in self.random.sample(UUIDS, self.random.choice((1, 1, 2)))
            if (
                offered := list(self.api.get(f"/resource_providers/{provider}/inventories").json.get("inventories", ()))
            )
        }

    def claim(self) -> None:
        """Replace the allocations of a consumer."""
        body = {"allocations": self._allocations(), "project_id": "p", "user_id": "u"}
        self.api.put(f"/allocations/{self.random.choice(CONSUMERS)}", body, version="1.12")

    def end(self) -> None:
        """Delete the allocations of a consumer."""
        self.api.delete(f"/allocations/{self.random.choice(CONSUMERS)}")

    def reshape(self) -> None:
        """Replace the inventories of a provider together with its allocations."""
        uuid_text = self.random.choice(UUIDS)
        held = self.api.get(f"/resource_providers/{uuid_text}/allocations").json.get("allocations", {})
        inventories = {
            "resource_provider_generation": self._generation(uuid_text),
            "inventories": self._inventories(),
        }
        allocations = {
            consumer: {
                "allocations": {uuid_text: {"resources": {self.random.choice(CLASSES): 1}}},
                "project_id": "p",
                "user_id": "u",
                "consumer_generation": each["consumer_generation"],
            }
            for consumer, each in held.items()
        }
        body = {"inventories": {uuid_text: inventories}, "allocations": allocations}
        self.api.post("/reshaper", body, version="1.30")

    def rename_class(self) -> None:
        """Rename a resource class."""
        one, other = self.random.sample(("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"), 2)
        self.api.put(f"/resource_classes/{one}", {"name": other}, version="1.6")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_running_server_responds_like_a_freshly_started_one(seed):
    random, store = Random(seed), MemoryStore()
    with placement_api(store) as api:
        for name in ("CUSTOM_A", "CUSTOM_B"):
            api.put(f"/resource_classes/{name}")
        api.put(f"/traits/{TRAITS[0]}")
        client, urls = Client(api, random), random.sample(READS, 8)
        for _ in range(60):
            for _ in range(random.choice((1, 1, 3))):
                client.write()
            fresh = Columns(Current(store).state)
            for url in random.sample(urls, 6):
                version = random.choice((39, 28, 17)) if "group_policy" not in url and "_tree" not in url else 39
                response, expected = api.get(url, version=f"1.{version}"), fresh.response(url, version)
                assert response.status == expected.status, url
                if response.status == 200:
                    assert response.json == json.loads(expected.body), url
