"""What a server remembers between answers is what one that was just started would read."""

import json
import uuid
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.placement.current import Current
from roost.store.memory_store import MemoryStore
from tests.support.servers.candidate_urls import Columns
from tests.support.servers.in_process_api import asking

pytestmark = pytest.mark.long

CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_A", "CUSTOM_B")
TRAITS = ("CUSTOM_T", "HW_CPU_X86_AVX2", "MISC_SHARES_VIA_AGGREGATE")
UUIDS = [str(uuid.UUID(int=number)) for number in range(1, 5)]  # of providers: they come, go, and come again
AGGREGATES = [str(uuid.UUID(int=number)) for number in range(101, 104)]
CONSUMERS = [str(uuid.UUID(int=number)) for number in range(201, 207)]
READS = (
    "/resource_providers",
    "/usages?project_id=p",
    "/traits?associated=true",
    "/resource_classes",
    *(f"/resource_providers/{each}{what}" for each in UUIDS[:3] for what in ("", "/allocations", "/inventories")),
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
    """Sends writes of all kinds, as they come to its mind; many are refused."""

    def __init__(self, api, random: Random) -> None:
        self.api, self.random = api, random
        self._parents = (None, *random.choice(((), UUIDS)))
        self._is_busy = False  # whether nothing happens but that consumers come and go

    def write(self) -> None:
        """Send one."""
        if self.random.random() < 0.1:
            self._is_busy = not self._is_busy
        comings_and_goings = (self.claim, self.claim, self.end)
        others = (
            self.create,
            self.create,
            self.offer,
            self.offer,
            self.wear,
            self.join,
            self.move,
            self.remove,
            self.reshape,
            self.rename_class,
        )
        kinds = comings_and_goings if self._is_busy else (*comings_and_goings, *others)
        self.random.choice(kinds)()

    def create(self) -> None:
        """Create a provider, maybe as a child."""
        parent = self.random.choice(self._parents)
        body = {"name": f"n{self.random.randint(1, 9)}", "uuid": self.random.choice(UUIDS)}
        self.api.post("/resource_providers", body if parent is None else body | {"parent_provider_uuid": parent})

    def move(self) -> None:
        """Rename a provider, or put it elsewhere."""
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

    def offer(self) -> None:
        """Replace what a provider offers."""
        uuid_text = self.random.choice(UUIDS)
        body = {"resource_provider_generation": self._generation(uuid_text), "inventories": self._inventories()}
        self.api.put(f"/resource_providers/{uuid_text}/inventories", body)

    def wear(self) -> None:
        """Replace what a provider wears."""
        uuid_text, worn = self.random.choice(UUIDS), self.random.sample(TRAITS, self.random.choice((0, 1, 1, 2)))
        if self.random.random() < 0.5:  # Where somebody shares, most of what is remembered is not.
            worn = [each for each in worn if each != TRAITS[-1]]
        body = {"resource_provider_generation": self._generation(uuid_text), "traits": worn}
        self.api.put(f"/resource_providers/{uuid_text}/traits", body)

    def join(self) -> None:
        """Replace the aggregates of a provider."""
        joined = self.random.sample(AGGREGATES, self.random.randint(0, 2))
        self.api.put(f"/resource_providers/{self.random.choice(UUIDS)}/aggregates", joined, version="1.18")

    def _allocations(self) -> dict:
        return {
            provider: {"resources": {self.random.choice(offered): self.random.randint(1, 3)}}
            for provider in self.random.sample(UUIDS, self.random.choice((1, 1, 2)))
            if (
                offered := list(self.api.get(f"/resource_providers/{provider}/inventories").json.get("inventories", ()))
            )
        }

    def claim(self) -> None:
        """Let a consumer hold something, in place of what it held."""
        body = {"allocations": self._allocations(), "project_id": "p", "user_id": "u"}
        self.api.put(f"/allocations/{self.random.choice(CONSUMERS)}", body, version="1.12")

    def end(self) -> None:
        """Let a consumer hold nothing."""
        self.api.delete(f"/allocations/{self.random.choice(CONSUMERS)}")

    def reshape(self) -> None:
        """Replace what a provider offers together with what is held of it."""
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
        """Give a class another name."""
        one, other = self.random.sample(("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"), 2)
        self.api.put(f"/resource_classes/{one}", {"name": other}, version="1.6")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_a_server_that_runs_answers_as_one_that_was_just_started(seed):
    random, store = Random(seed), MemoryStore()
    with asking(store) as api:
        for name in ("CUSTOM_A", "CUSTOM_B"):
            api.put(f"/resource_classes/{name}")
        api.put(f"/traits/{TRAITS[0]}")
        client, asked = Client(api, random), random.sample(READS, 8)
        for _ in range(60):
            for _ in range(random.choice((1, 1, 3))):
                client.write()
            fresh = Columns(Current(store).state)
            for url in random.sample(asked, 6):
                version = random.choice((39, 28, 17)) if "group_policy" not in url and "_tree" not in url else 39
                answered, expected = api.get(url, version=f"1.{version}"), fresh.response(url, version)
                assert answered.status == expected.status, url
                if answered.status == 200:
                    assert answered.json == json.loads(expected.body), url
