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


def settings(*filters):
    """Return settings with PCI devices in Placement."""
    return Settings(
        filter_scheduler=FilterScheduler(enabled_filters=filters, pci_in_placement=True), pci=Pci(alias=(ALIAS,))
    )


def host(name, *kinds, traits=()):
    """Return a host with one provider per device; each kind is the device type of its pool."""
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


def wish(alias="nic:1", **more):
    """Return a request for devices by their alias."""
    flavor = Flavor(name="small", vcpus=1, memory_mb=1, extra_specs={"pci_passthrough:alias": alias} if alias else {})
    return Request(flavor=flavor, **more)


def device_providers(decision: Decision):
    """Return the providers of the allocated devices, per instance."""
    return [sorted(uuid for uuid, amounts in pick.allocations.items() if amounts.get(NIC)) for pick in decision.picks]


def test_first_candidate_with_matching_devices_is_claimed():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-PF", "type-VF", "type-VF"))
        assert device_providers(roost.decide(wish())) == [[uuid_named("a 1")]]
        assert device_providers(roost.decide(wish())) == [[uuid_named("a 2")]]
        refusal = roost.decide(wish())
        assert refusal.outcome == "refused"
        assert [stage.rule for stage in refusal.stages if stage.before > stage.after] == ["pci_passthrough"]


def test_any_device_provider_is_accepted_without_the_filter():
    with roost_on(settings=settings()) as roost:
        roost.install(host("a", "type-PF", "type-VF"))
        assert device_providers(roost.decide(wish())) == [[uuid_named("a 0")]]


def test_each_device_comes_from_a_separate_provider():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-VF", "type-VF", "type-PF", "type-VF", "type-VF"))
        uuids = [uuid for each in device_providers(roost.decide(wish("nic:2", count=2))) for uuid in each]
        assert sorted(uuids) == sorted(uuid_named(f"a {at}") for at in (0, 1, 3, 4))
        assert roost.decide(wish("nic:1")).outcome == "refused"


def test_devices_of_the_allocated_providers_are_taken():
    fleet = host("a", "type-VF", "type-VF")
    (spec,) = fleet.hosts
    # The pool with additional tags is not the first choice, unless its provider holds the allocation.
    pools = (msgspec.structs.replace(spec.facts.pci_pools[0], tags={"kind": "x"}), spec.facts.pci_pools[1])
    facts = msgspec.structs.replace(spec.facts, pci_pools=pools)
    fleet = msgspec.structs.replace(fleet, hosts=[msgspec.structs.replace(spec, facts=facts)])
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(fleet)
        assert device_providers(roost.decide(wish(count=2))) == [[uuid_named("a 0")], [uuid_named("a 1")]]


def test_devices_need_the_owner_trait_if_every_host_has_it():
    with roost_on(settings=settings()) as roost:
        roost.install(host("a", "type-PF", "type-VF", traits=("OWNER_NOVA",)))
        assert device_providers(roost.decide(wish())) == [[uuid_named("a 1")]]


def test_port_devices_are_not_requested_from_placement():
    port = PciRequest(alternatives=({"vendor_id": "8086", "dev_type": "type-VF"},), source="port")
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-VF"))
        assert device_providers(roost.decide(wish(None, pci_requests=(port,)))) == [[]]


def test_duplicate_group_suffix_is_an_error():
    group = ResourceGroup(suffix="pci0-0", resources={NIC: 1})
    with roost_on(settings=settings()) as roost:
        roost.install(host("a", "type-VF"))
        with pytest.raises(BadRequest, match="two resource groups have the suffix 'pci0-0'"):
            roost.decide(wish(groups=(group,)))


@pytest.mark.parametrize("filters", [(), ("pci_passthrough",)])
def test_picks_and_alternates_map_devices_to_providers(filters):
    with roost_on(settings=settings(*filters)) as roost:
        roost.install(host("a", "type-VF", "type-VF"))
        roost.install(host("b", "type-VF", "type-VF"))
        decision = roost.decide(wish("nic:2"))
        (pick,), (alternate,) = decision.picks, decision.alternates[""]
        for each in (pick, alternate):
            uuids = (uuid_named(f"{each.node} 0"), uuid_named(f"{each.node} 1"))
            assert {suffix: each.mappings[suffix] for suffix in ("pci0-0", "pci0-1")} == {
                "pci0-0": (uuids[0],),
                "pci0-1": (uuids[1],),
            }
        stored_decision = roost.decision(decision.uuid)
        assert (stored_decision.picks, stored_decision.alternates) == (decision.picks, decision.alternates)


def test_nova_allocation_request_maps_devices_to_providers():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-PF", "type-VF"))
        ((selection,),) = selections_of(roost.decide(wish()), roost.state)
        allocation_request = json.loads(selection.allocation_request)
        assert allocation_request["allocations"][uuid_named("a 1")] == {"resources": {NIC: 1}}
        assert allocation_request["mappings"]["pci0-0"] == [uuid_named("a 1")]


def test_a_decision_without_devices_has_no_mappings():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-VF"))
        assert [pick.mappings for pick in roost.decide(wish(None)).picks] == [{}]


def test_stored_decision_can_be_explained_and_replayed():
    with roost_on(settings=settings("pci_passthrough")) as roost:
        roost.install(host("a", "type-PF", "type-VF"))
        decision = roost.decide(wish())
        assert roost.replay(decision.uuid).is_same
        refusal = roost.decide(wish())
        assert roost.why(refusal.uuid).explanation is not None
        assert roost.capacity(wish()).count == 0
