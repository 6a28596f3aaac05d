"""Alternates of failed builds obey nodes, racks and server groups as they are at the time of the claim."""

import pytest

from roost.errors import BuildFailed
from roost.model.fleet import Fleet
from roost.model.host import HostFacts, HostSpec
from roost.store.memory_store import MemoryStore
from tests.support.conductors.builders import ScriptedBuilder, allocations_of, attempts_of, conductor
from tests.support.fleets.worlds import (
    group,
    host,
    hosts,
    merge_fleets,
    roost_on,
    roost_with,
    small_request,
    uuid_named,
)

ONE = uuid_named("one")


def build_one(roost, *failing, during_build=None, **request):
    """Build one instance, which fails on some hosts; return the outcome."""
    builder = ScriptedBuilder({name: [BuildFailed("no")] for name in failing})
    acts = [during_build] if during_build else []
    builder.meanwhile = lambda *_: acts.pop()() if acts else None
    (outcome,) = conductor(roost, builder).build(small_request(instance_uuids=(ONE,), **request))
    return outcome


def hosts_in_racks(*racks):
    """Return hosts h0, h1, … in racks, each better than the next."""
    return merge_fleets(
        *(
            host(f"h{number}", VCPU=4, MEMORY_MB=100 - number, facts=HostFacts(rack=rack))
            for number, rack in enumerate(racks)
        )
    )


def in_domain(name, **request):
    """Return a request for a member of the group in a fault domain."""
    return {"in_group": "g", "hints": {"fault_domain": name}, **request}


def test_only_member_of_an_affinity_group_may_use_another_host():
    roost = roost_with(hosts(3), group("g", "affinity"))
    outcome = build_one(roost, "h0", in_group="g")
    assert attempts_of(outcome) == [("h0", "claimed", "no"), ("h1", "claimed", "")]
    assert [pick.host for pick in roost.decide(small_request(in_group="g")).picks] == ["h1"]


def test_affinity_group_with_other_members_refuses_another_host():
    store = MemoryStore()
    roost, rival = roost_with(hosts(2), group("g", "affinity"), store=store), roost_on(store.peer(), seed=9)
    outcome = build_one(roost, "h0", in_group="g", during_build=lambda: rival.decide(small_request(in_group="g")))
    reason = "the policy affinity of its server group keeps it away from h1"
    assert attempts_of(outcome) == [("h0", "claimed", "no"), ("h1", "refused", reason)]
    assert (outcome.status, allocations_of(roost.state, ONE)) == ("ERROR", None)


@pytest.mark.parametrize(("limit", "claim"), [(1, "refused"), (2, "claimed")])
def test_alternate_respects_the_max_server_per_host_of_its_group(limit, claim):
    store = MemoryStore()
    roost = roost_with(hosts(2), group("g", "anti-affinity", limit), store=store)
    rival = roost_on(store.peer(), seed=9)
    outcome = build_one(
        roost, "h0", in_group="g", during_build=lambda: rival.decide(small_request(in_group="g", force_hosts=("h1",)))
    )
    assert [each[:2] for each in attempts_of(outcome)] == [("h0", "claimed"), ("h1", claim)]


def test_alternate_may_be_in_a_rack_of_its_own_fault_domain():
    roost = roost_with(hosts_in_racks("r0", "r0", "r1"), group("g", "fault-domain"))
    roost.decide(small_request(**in_domain("x", force_hosts=("h1",))))
    outcome = build_one(roost, "h0", "h2", **in_domain("x"))
    assert attempts_of(outcome) == [("h0", "claimed", "no"), ("h2", "claimed", "no"), ("h1", "claimed", "")]
    assert [pick.host for pick in roost.decide(small_request(**in_domain("y"))).picks] == ["h2"]


def test_alternate_in_a_rack_of_another_fault_domain_is_refused():
    store = MemoryStore()
    roost = roost_with(hosts_in_racks("r0", "r1", "r2"), group("g", "fault-domain"), store=store)
    rival = roost_on(store.peer(), seed=9)
    outcome = build_one(
        roost,
        "h0",
        during_build=lambda: rival.decide(small_request(**in_domain("y", force_hosts=("h1",)))),
        **in_domain("x"),
    )
    reason = "the policy fault-domain of its server group keeps it away from h1"
    assert attempts_of(outcome) == [("h0", "claimed", "no"), ("h1", "refused", reason), ("h2", "claimed", "")]


def test_alternate_is_the_chosen_node_of_a_service_with_several_nodes():
    nodes = merge_fleets(
        *(host(name, VCPU=4, MEMORY_MB=memory) for name, memory in (("n0", 10), ("n1", 40), ("n2", 50)))
    )
    specs = [HostSpec(provider_uuid=each.provider_uuid, host="s", node=each.node) for each in nodes.hosts]
    roost = roost_with(Fleet(providers=nodes.providers, hosts=specs))
    outcome = build_one(roost, "s", memory_mb=20)
    assert [(each.host, each.node) for each in outcome.attempts] == [("s", "n2"), ("s", "n1")]
    assert allocations_of(roost.state, ONE)[0] == outcome.node == "n1"
