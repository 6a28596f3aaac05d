import msgspec

from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import aggregate, host, merge_fleets, roost_on


def test_another_host_is_offered_although_only_a_sharing_provider_has_the_amount():
    roost = roost_on(MemoryStore())
    pool = host("pool", aggregates=["a"], DISK_GB=100).providers[0]
    pool = msgspec.structs.replace(pool, traits=frozenset({"MISC_SHARES_VIA_AGGREGATE"}))
    hosts = merge_fleets(aggregate("a"), host("h1", aggregates=["a"], VCPU=8), host("h2", VCPU=8))
    roost.install(msgspec.structs.replace(hosts, providers=[*hosts.providers, pool]))
    # Within the requested tree of h2, the disk of the pool does not count for h1 either.
    request = Request(flavor=Flavor(name="f", vcpus=1, root_gb=12), force_hosts=("h2",))
    assert [change.text for change in roost.explain(request).changes] == ["on any host instead of those named"]
