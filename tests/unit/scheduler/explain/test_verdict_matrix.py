import msgspec

from roost.model.evidence.explain import Shortfall
from roost.model.flavor import Flavor
from roost.model.provider import Inventory
from roost.model.request import Request
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import aggregate, host, merge_fleets, roost_on


def test_shortfall_counts_the_inventory_of_sharing_providers():
    roost = roost_on(MemoryStore())
    pool = host("pool", aggregates=["a"], DISK_GB=10).providers[0]
    pool = msgspec.structs.replace(pool, traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"}))
    hosts = merge_fleets(aggregate("a"), host("h1", aggregates=["a"], VCPU=8), host("h2", VCPU=8, DISK_GB=4))
    roost.install(msgspec.structs.replace(hosts, providers=[*hosts.providers, pool]))
    explanation = roost.explain(Request(flavor=Flavor(name="f", vcpus=1, root_gb=12)))
    lack = "lack 12 GiB disk or more"
    assert {miss.host: miss.shortfalls for miss in explanation.nearest} == {
        "h1": [Shortfall(reason=lack, resource_class="DISK_GB", has=10, wanted=12)],
        "h2": [Shortfall(reason=lack, resource_class="DISK_GB", has=4, wanted=12)],
    }


def test_shortfall_names_the_largest_amount_of_one_allocation():
    roost = roost_on(MemoryStore())
    fleet = merge_fleets(host("h1"), host("h2", VCPU=16))
    bounded = {"VCPU": Inventory(total=8, allocation_ratio=4.0, max_unit=8)}
    first = msgspec.structs.replace(fleet.providers[0], inventories=bounded)
    roost.install(msgspec.structs.replace(fleet, providers=[first, fleet.providers[1]]))
    explanation = roost.explain(Request(flavor=Flavor(name="f", vcpus=20)))
    assert {miss.host: miss.shortfalls for miss in explanation.nearest} == {
        "h1": [Shortfall(reason="accept at most 8 VCPU in one allocation")],
        "h2": [Shortfall(reason="lack 20 VCPU or more", resource_class="VCPU", has=16, wanted=20)],
    }
