"""Claims of Nova's scheduler at another Placement: our own server, and the reference implementation."""

import json

import msgspec
import pytest

from roost.client.remote_claims import RemotePlacement
from roost.errors import PlacementGone
from roost.model.names import uuid_bytes
from roost.model.settings.roost_settings import Settings
from roost.nova.neutron.network_lookup import FoundNetwork
from tests.support.fleets.named_uuids import uuid_named
from tests.support.nova_conductors import conductor_over_remote, hosts_of, reason_of
from tests.support.nova_messages import flavor, instance_group, nova_object, requested_networks
from tests.support.servers.remote_placements import host, stocked_placement

pytestmark = pytest.mark.long

ME, OTHER, THIRD, MIGRATION = (uuid_named(name) for name in ("me", "other", "third", "migration"))
ROUTED = msgspec.convert({"scheduler": {"query_placement_for_routed_network_aggregates": True}}, Settings)
ONE = {"VCPU": 1, "MEMORY_MB": 64}


@pytest.fixture(params=["ours", pytest.param("reference", marks=pytest.mark.differential)])
def remote(request, tmp_path):
    """A Placement with host-0, host-1 and host-2, of 4 VCPU each; without other weights, host-2 is the best."""
    with stocked_placement(request, tmp_path) as placement:
        yield placement


@pytest.fixture
def nova(remote):
    with conductor_over_remote(remote.address) as conductor:
        yield conductor


def claim(remote, consumer, *numbers, **amounts):
    """Claim as Nova's conductor does, without the scheduler."""
    known = remote.ask("GET", f"/allocations/{consumer}")[1]
    body = {
        "allocations": {host(number): {"resources": amounts or ONE} for number in numbers},
        "project_id": "a-project",
        "user_id": "a-user",
        "consumer_generation": known.get("consumer_generation"),
        "consumer_type": "INSTANCE",
    }
    status, answer = remote.ask("PUT", f"/allocations/{consumer}", body)
    assert status == 204, answer


def release(remote, consumer):
    assert remote.ask("DELETE", f"/allocations/{consumer}")[0] == 204


def host_here(nova, uuid):
    """Return the host of an instance in the columns; None: it is on no host."""
    state = nova.serving.state
    holder = state.holders.get(uuid_bytes(uuid))
    return None if holder is None else state.hosts.names[state.hosts.row_of_id[holder.instance.host_id]]


def test_selection_has_the_candidate_that_was_claimed(nova, remote):
    ((chosen, *alternates),) = nova.select(ME)
    assert [each["service_host"] for each in (chosen, *alternates)] == ["host-2", "host-1", "host-0"]
    for each, number in zip((chosen, *alternates), (2, 1, 0), strict=True):
        assert json.loads(each["allocation_request"]) == {
            "allocations": {host(number): {"resources": ONE}},
            "mappings": {"": [host(number)]},
        }
    assert remote.held(ME) == {host(2): ONE}


def test_mappings_name_the_provider_of_each_port(remote):
    child = uuid_named("child")
    remote.add("nic", child, parent=host(1), VGPU=2)
    port = nova_object("RequestGroup", "1.3", use_same_provider=True, requester_id=THIRD, resources={"VGPU": 1})
    with conductor_over_remote(remote.address) as nova:
        ((chosen,),) = nova.select(ME, requested_resources=[port])
    assert json.loads(chosen["allocation_request"])["mappings"] == {"": [host(1)], THIRD: [child]}
    assert remote.held(ME) == {host(1): ONE, child: {"VGPU": 1}}


def test_evacuated_instance_holds_resources_on_both_hosts(nova, remote):
    nova.select(ME)
    assert hosts_of(nova.select(ME, ignore_hosts=["host-2"], alternates=False)) == [["host-1"]]
    assert remote.held(ME) == {host(2): ONE, host(1): ONE}
    assert host_here(nova, ME) == "host-1"


def test_evacuation_of_an_instance_unknown_here_adds_to_its_allocations(nova, remote):
    claim(remote, ME, 2, VCPU=2, MEMORY_MB=128)
    assert hosts_of(nova.select(ME, ignore_hosts=["host-2"], alternates=False)) == [["host-1"]]
    assert remote.held(ME) == {host(2): {"VCPU": 2, "MEMORY_MB": 128}, host(1): ONE}


def test_refused_evacuation_changes_nothing(nova, remote):
    nova.select(ME)
    refusal = nova.refuse(ME, ignore_hosts=["host-2"], flavor=flavor(vcpus=3, memory_mb=9000))
    assert reason_of(refusal) == "There are not enough hosts available."
    assert remote.held(ME) == {host(2): ONE}
    assert host_here(nova, ME) == "host-2"


def test_resized_instance_without_allocations_claims_only_its_new_host(nova, remote):
    nova.select(ME)
    release(remote, ME)
    claim(remote, MIGRATION, 2)
    assert hosts_of(nova.select(ME, ignore_hosts=["host-2"], alternates=False)) == [["host-1"]]
    assert (remote.held(ME), remote.held(MIGRATION)) == ({host(1): ONE}, {host(2): ONE})


def test_instances_released_by_nova_are_decided_again(nova, remote):
    nova.select(ME, OTHER)
    for uuid in (ME, OTHER):
        release(remote, uuid)
    assert hosts_of(nova.select(ME, alternates=False)) == [["host-2"]]
    release(remote, ME)
    assert hosts_of(nova.select(ME, OTHER, alternates=False)) == [["host-2"], ["host-1"]]
    assert (remote.held(ME), remote.held(OTHER)) == ({host(2): ONE}, {host(1): ONE})


def test_new_instances_with_allocations_are_refused_together(nova, remote):
    claim(remote, OTHER, 0)
    assert "has allocations at the remote Placement already" in reason_of(nova.refuse(ME, OTHER))
    assert (remote.held(ME), remote.held(OTHER)) == ({}, {host(0): ONE})


def test_host_that_filled_up_meanwhile_leads_to_the_next_one(remote):
    class Fills(RemotePlacement):
        def claim(self, consumer_uuid, allocations, **owner):
            """Let another client fill the host first."""
            if host(2) in allocations:
                claim(remote, THIRD, 2, VCPU=4)
            return super().claim(consumer_uuid, allocations, **owner)

    with conductor_over_remote(remote.address, wrapped=lambda each: Fills(each._connection)) as nova:
        assert hosts_of(nova.select(ME, alternates=False)) == [["host-1"]]
    assert remote.held(ME) == {host(1): ONE}


def test_addition_without_an_answer_is_taken_back(remote):
    class LosesAnswers(RemotePlacement):
        is_lost = False

        def replace(self, *names, **owner):
            """Replace, and lose the first answer."""
            assert super().replace(*names, **owner)
            if not self.is_lost:
                self.is_lost = True
                raise PlacementGone("it was not heard")
            return True

    claim(remote, ME, 2)
    with conductor_over_remote(remote.address, wrapped=lambda each: LosesAnswers(each._connection)) as nova:
        assert "it was not heard" in reason_of(nova.refuse(ME, ignore_hosts=["host-2"]))
        assert remote.held(ME) == {host(2): ONE}
        assert host_here(nova, ME) is None


def test_members_of_a_group_are_known_across_requests(nova):
    fields = {"scheduler_hints": {"group": [THIRD]}, "alternates": False}
    for uuid, number in ((ME, 2), (OTHER, 1)):
        group = instance_group(THIRD, "anti-affinity", ME, OTHER)
        assert hosts_of(nova.select(uuid, instance_group=group, **fields)) == [[f"host-{number}"]]
    assert hosts_of(nova.select(ME, instance_group=group, ignore_hosts=["host-2"], **fields)) == [["host-0"]]


def test_dedicated_processors_also_find_hosts_that_offer_only_virtual_ones(remote):
    remote.add("pinned", uuid_named("pinned"), PCPU=4, MEMORY_MB=2048)
    wanted = flavor(extra_specs={"hw:cpu_policy": "dedicated"})
    with conductor_over_remote(remote.address) as nova:
        (names,) = hosts_of(nova.select(ME, flavor=wanted, ignore_hosts=["host-0", "host-1"]))
    assert set(names) == {"pinned", "host-2"}


class FixedLookup:
    """Networks with one segment each."""

    def __init__(self, segment):
        self.segment = segment

    def submit(self, networks, outcome):
        """Return the segment for each network."""
        outcome.take_networks(
            tuple(FoundNetwork(name=f"network {each.network}", segments=(self.segment,)) for each in networks)
        )


def test_segment_that_is_not_copied_yet_is_read_from_the_remote_placement(remote):
    segment, aggregate = uuid_named("segment"), uuid_named("aggregate")
    networks = requested_networks({"network_id": "n"})
    with conductor_over_remote(remote.address, settings=ROUTED, networks=FixedLookup(segment)) as nova:
        assert nova.refuse(ME, requested_networks=networks)["class"] == "ResourceProviderAggregateRetrievalFailed"
        remote.add("segment", segment)
        refused = reason_of(nova.refuse(ME, requested_networks=networks))
        assert refused == "Scheduling failed: Aggregates not found for the network n"
        for provider in (segment, host(1)):
            path = f"/resource_providers/{provider}"
            generation = remote.ask("GET", path)[1]["generation"]
            body = {"aggregates": [aggregate], "resource_provider_generation": generation}
            assert remote.ask("PUT", f"{path}/aggregates", body)[0] == 200
        assert hosts_of(nova.select(ME, requested_networks=networks)) == [["host-1"]]
