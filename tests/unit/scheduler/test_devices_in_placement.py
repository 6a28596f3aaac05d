import json

import msgspec
import pytest

from roost.compat.scheduler.selections import selections_of
from roost.errors import BadRequest
from roost.model.devices.pci import PciRequest
from roost.model.evidence.decision import Decision
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.host import HostFacts, HostSpec, PciPool
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request, ResourceGroup
from roost.model.settings.roost_settings import FilterScheduler, Pci, Settings
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import roost_on

NIC = "CUSTOM_PCI_8086_154C"
ALIAS = '{"name": "nic", "vendor_id": "8086", "product_id": "154c", "device_type": "type-VF"}'


def settings(*enabled):
    """Give settings by which Placement is asked for devices."""
    return Settings(
        filter_scheduler=FilterScheduler(enabled_filters=enabled, pci_in_placement=True), pci=Pci(alias=(ALIAS,))
    )


def host(name, *kinds, traits=()):
    """Give a host with a provider for each device; the kind says what its pool has it for."""
    root = ProviderSpec(
        uuid=uuid_named(name),
        name=name,
        traits=frozenset(traits),
        inventories={"VCPU": Inventory(total=8), "MEMORY_MB": Inventory(total=64)},
    )
    devices = [
        ProviderSpec(
            uuid=uuid_named(f"{name} {at}"),
            name=f"{name} {at}",
            parent_uuid=root.uuid,
            inventories={NIC: Inventory(total=1)},
            traits=frozenset(traits if kind == "type-VF" else ()),
        )
        for at, kind in enumerate(kinds)
    ]
    pools = tuple(
        PciPool(vendor_id="8086", product_id="154c", dev_type=kind, count=1, rp_uuids=(each.uuid,))
        for kind, each in zip(kinds, devices, strict=True)
    )
    spec = HostSpec(provider_uuid=root.uuid, host=name, node=name, facts=HostFacts(pci_pools=pools))
    return Fleet(providers=[root, *devices], hosts=[spec])


def wish(told="nic:1", **more):
    """Give a request for devices by the alias."""
    flavor = Flavor(name="small", vcpus=1, memory_mb=1, extra_specs={"pci_passthrough:alias": told} if told else {})
    return Request(flavor=flavor, **more)


def held(decision: Decision):
    """Give the providers that devices are taken from, per instance."""
    return [sorted(uuid for uuid, amounts in pick.allocations.items() if amounts.get(NIC)) for pick in decision.picks]


def test_the_first_way_whose_devices_will_do_is_claimed():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-PF", "type-VF", "type-VF"))
        assert held(roost.decide(wish())) == [[uuid_named("a 1")]]
        assert held(roost.decide(wish())) == [[uuid_named("a 2")]]
        refused = roost.decide(wish())
        assert refused.outcome == "refused"
        assert [stage.rule for stage in refused.stages if stage.before > stage.after] == ["pci_passthrough"]


def test_without_the_filter_any_provider_will_do():
    with roost_on(settings=settings()) as roost:
        roost.install(host("a", "type-PF", "type-VF"))
        assert held(roost.decide(wish())) == [[uuid_named("a 0")]]


def test_several_devices_of_several_instances_are_each_of_a_provider():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-VF", "type-VF", "type-PF", "type-VF", "type-VF"))
        taken = [uuid for each in held(roost.decide(wish("nic:2", count=2))) for uuid in each]
        assert sorted(taken) == sorted(uuid_named(f"a {at}") for at in (0, 1, 3, 4))
        assert roost.decide(wish("nic:1")).outcome == "refused"


def test_the_devices_of_the_providers_that_serve_an_instance_are_taken():
    fleet = host("a", "type-VF", "type-VF")
    (spec,) = fleet.hosts
    # Of what more is said is not taken first, unless its provider is asked.
    pools = (msgspec.structs.replace(spec.facts.pci_pools[0], tags={"kind": "x"}), spec.facts.pci_pools[1])
    facts = msgspec.structs.replace(spec.facts, pci_pools=pools)
    fleet = msgspec.structs.replace(fleet, hosts=[msgspec.structs.replace(spec, facts=facts)])
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(fleet)
        assert held(roost.decide(wish(count=2))) == [[uuid_named("a 0")], [uuid_named("a 1")]]


def test_devices_belong_to_nova_where_every_host_does():
    with roost_on(settings=settings()) as roost:
        roost.install(host("a", "type-PF", "type-VF", traits=("OWNER_NOVA",)))
        assert held(roost.decide(wish())) == [[uuid_named("a 1")]]


def test_devices_of_ports_are_not_asked_of_placement():
    port = PciRequest(alternatives=({"vendor_id": "8086", "dev_type": "type-VF"},), source="port")
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-VF"))
        assert held(roost.decide(wish(None, pci_requests=(port,)))) == [[]]


def test_a_suffix_that_is_taken_ends_the_request():
    group = ResourceGroup(suffix="pci0-0", resources={NIC: 1})
    with roost_on(settings=settings()) as roost:
        roost.install(host("a", "type-VF"))
        with pytest.raises(BadRequest, match="two resource groups have the suffix 'pci0-0'"):
            roost.decide(wish(groups=(group,)))


@pytest.mark.parametrize("enabled", [(), ("pci_passthrough",)])
def test_a_decision_says_by_which_providers_each_device_is_served_alternates_too(enabled):
    with roost_on(settings=settings(*enabled)) as roost:
        roost.install(host("a", "type-VF", "type-VF"))
        roost.install(host("b", "type-VF", "type-VF"))
        decision = roost.decide(wish("nic:2"))
        (pick,), (alternate,) = decision.picks, decision.alternates[""]
        for each in (pick, alternate):
            mine = (uuid_named(f"{each.node} 0"), uuid_named(f"{each.node} 1"))
            assert {suffix: each.mappings[suffix] for suffix in ("pci0-0", "pci0-1")} == {
                "pci0-0": (mine[0],),
                "pci0-1": (mine[1],),
            }
        stored = roost.decision(decision.uuid)
        assert (stored.picks, stored.alternates) == (decision.picks, decision.alternates)


def test_the_claim_that_novas_classes_are_given_says_by_which_providers_each_device_is_served():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-PF", "type-VF"))
        ((selection,),) = selections_of(roost.decide(wish()), roost.state)
        asked = json.loads(selection.allocation_request)
        assert asked["allocations"][uuid_named("a 1")] == {"resources": {NIC: 1}}
        assert asked["mappings"]["pci0-0"] == [uuid_named("a 1")]


def test_a_decision_without_devices_has_no_mappings():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-VF"))
        assert [pick.mappings for pick in roost.decide(wish(None)).picks] == [{}]


def test_a_stored_decision_explains_and_replays_itself():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-PF", "type-VF"))
        decision = roost.decide(wish())
        assert roost.replay(decision.uuid).is_same
        refused = roost.decide(wish())
        assert roost.why(refused.uuid).explanation is not None
        assert roost.capacity(wish()).count == 0
