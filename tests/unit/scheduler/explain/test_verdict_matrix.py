import msgspec

from roost.model.evidence.explain import Shortfall
from roost.model.flavor import Flavor
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
