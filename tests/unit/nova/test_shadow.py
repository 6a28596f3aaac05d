from contextlib import contextmanager

import msgspec
import pytest

from roost.app.up import open_product
from roost.model.settings.roost_settings import Settings
from roost.nova import shadow
from roost.nova.neutron.network_lookup import FoundNetwork
from roost.nova.rpc.envelope import CallContext, Message
from roost.nova.rpc.rpc_call import Call
from roost.nova.rpc.rpc_failure import Failure, build_failure
from roost.nova.shadow import Shadow
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import FixedClock, hosts
from tests.support.nova_conductors import claim
from tests.support.nova_messages import flavor, instance_group, request_spec, requested_networks

ME, OTHER = uuid_named("me"), uuid_named("other")


class Cloud:
    """A nova-scheduler beside a Roost in shadow mode."""

    def __init__(self, product, serving):
        self.product, self.serving, self.clock = product, serving, FixedClock()
        self.shadow = Shadow(product, serving, elapsed_s=self.clock.elapsed_s)

    def request(self, *uuids, is_waiting=True, **fields):
        """Send a copy of a request, and return once Roost has chosen, or at once."""
        message = Message(
            method="select_destinations",
            version="4.5",
            namespace=None,
            args={"instance_uuids": list(uuids), "spec_obj": request_spec(**fields)},
            context=CallContext(request_id="req-1"),
            message_id=None,
            reply_queue=None,
            timeout_s=None,
            unique_id=None,
        )
        self.shadow.select_destinations(Call(message, lambda *_: None))
        for _ in range(3 if is_waiting else 0):  # A new server group takes a task of its own.
            self.serving.run(lambda _: None)

    def claim(self, uuid, host):
        """Claim as nova-scheduler does."""
        claim(self.serving, uuid, **{host: 1})

    def verdicts(self, *, after_s=0.0):
        """Return the verdicts so far, with the hosts of both."""
        self.clock.time_s += after_s
        self.serving.run(self.shadow.compare)
        return [(each.verdict, each.nova, each.roost) for each in self.shadow.recent]


@pytest.fixture
def cloud():
    with _open() as opened:
        yield opened


@contextmanager
def _open(*, settings=None):
    product, serving = open_product("sqlite://", settings or Settings())
    try:
        serving.run(lambda _: product.install(hosts(3, VCPU=8, MEMORY_MB=4096)))
        yield Cloud(product, serving)
    finally:
        serving.stop()


def test_same_host_is_the_same_verdict(cloud):
    cloud.request(ME)
    assert cloud.verdicts() == []
    cloud.claim(ME, "h0")
    assert cloud.verdicts() == [("same", ("h0",), ("h0",))]
    assert cloud.shadow.counts == {"same": 1}


def test_host_with_an_equal_score_is_equal_and_others_have_the_difference(cloud):
    cloud.request(ME)
    cloud.claim(ME, "h2")
    cloud.request(OTHER)
    cloud.claim(OTHER, "h2")
    assert cloud.verdicts() == [("equal", ("h2",), ("h0",)), ("other", ("h2",), ("h0",))]
    assert cloud.shadow.recent[1].reason.startswith("h2 scores ")


def test_shadow_claims_nothing(cloud):
    cloud.request(ME)
    assert cloud.serving.state.holders == {}


def test_nova_refuses_if_it_claims_nothing_in_time(cloud):
    cloud.request(ME)
    assert cloud.verdicts(after_s=29.0) == []
    assert cloud.verdicts(after_s=1.0) == [("only_roost", (), ("h0",))]


def test_both_refuse(cloud):
    cloud.request(ME, flavor=flavor(vcpus=99))
    assert cloud.verdicts(after_s=30.0) == [("same", (), ())]


def test_host_of_a_request_that_roost_refuses(cloud):
    cloud.request(ME, flavor=flavor(extra_specs={"trait:CUSTOM_X": "required"}))
    cloud.claim(ME, "h1")
    assert cloud.verdicts() == [("only_nova", ("h1",), ())]
    assert cloud.shadow.recent[0].reason == "0 of 3 hosts: 3 lack trait CUSTOM_X"


def test_allocations_of_before_do_not_count(cloud):
    cloud.claim(ME, "h1")
    cloud.request(ME, ignore_hosts=["h1"])
    assert cloud.verdicts() == []


def test_allocations_on_an_ignored_host_do_not_count(cloud):
    cloud.request(ME, ignore_hosts=["h1"], flavor=flavor(vcpus=99))
    cloud.claim(ME, "h1")
    assert cloud.verdicts(after_s=30.0) == [("same", (), ())]


def test_hosts_of_several_instances_are_compared_together(cloud):
    cloud.request(ME, OTHER)
    cloud.claim(ME, "h1")
    assert cloud.verdicts() == []
    cloud.claim(OTHER, "h0")
    assert cloud.verdicts() == [("same", ("h1", "h0"), ("h0", "h1"))]


def test_group_of_a_request_counts(cloud):
    group = instance_group(uuid_named("g"), "anti-affinity", ME)
    cloud.request(ME, instance_group=group)
    cloud.claim(ME, "h0")
    assert cloud.verdicts() == [("same", ("h0",), ("h0",))]


def test_hosts_of_the_databases_count_without_allocations(cloud):
    cloud.request(ME)
    cloud.shadow.note_hosts({ME: "h0", OTHER: "h1"})
    assert cloud.verdicts() == [("same", ("h0",), ("h0",))]


def test_malformed_copy_is_unknown(cloud):
    cloud.request(ME, flavor=None)
    assert [each.verdict for each in cloud.shadow.recent] == ["unknown"]


class FixedLookup:
    """A lookup whose result a test chooses: networks, or a failure."""

    def __init__(self, result):
        self.result = result

    def submit(self, _networks, outcome):
        """Return the result."""
        if isinstance(self.result, Failure):
            outcome.refuse(self.result)
        else:
            outcome.take_networks(self.result)


def test_copy_with_networks_is_compared_with_their_segments():
    settings = msgspec.convert({"scheduler": {"query_placement_for_routed_network_aggregates": True}}, Settings)
    segment = FoundNetwork(name="network n", segments=(uuid_named("segment"),))
    results = ((), (segment,), build_failure("ConnectFailure", "m", "no answer"))
    fields = {"requested_networks": requested_networks({"network_id": "n"})}
    with _open(settings=settings) as cloud:
        for uuid, result in zip((ME, OTHER, uuid_named("third")), results, strict=True):
            cloud.shadow = Shadow(
                cloud.product, cloud.serving, elapsed_s=cloud.clock.elapsed_s, networks=FixedLookup(result)
            )
            cloud.request(uuid, **fields)
            if not result:
                cloud.claim(uuid, "h0")
                assert cloud.verdicts() == [("same", ("h0",), ("h0",))]
            else:
                assert cloud.verdicts() == [("unknown", (), ())]
    assert cloud.shadow.recent[0].reason == "no answer"


def test_copies_beyond_the_limit_of_calls_are_unknown(cloud):
    cloud.shadow = Shadow(cloud.product, cloud.serving, elapsed_s=cloud.clock.elapsed_s, calls_max=1)
    third, fourth = uuid_named("third"), uuid_named("fourth")

    def block(_):
        cloud.request(ME, is_waiting=False)
        cloud.request(OTHER, is_waiting=False)

    cloud.serving.run(block)
    cloud.serving.run(lambda _: None)
    assert [each.reason for each in cloud.shadow.recent] == ["1 choices are in progress already (limit nova.calls_max)"]
    cloud.request(third)
    cloud.request(fourth, instance_group=instance_group(uuid_named("group"), "affinity"))
    for uuid in (ME, third, fourth):
        cloud.claim(uuid, "h0")
    assert [verdict for verdict, _, _ in cloud.verdicts()].count("unknown") == 1


def test_request_beyond_the_limit_is_unknown_and_not_decided(cloud, monkeypatch):
    monkeypatch.setattr(shadow, "_WAITING_MAX", 1)
    cloud.request(ME)
    cloud.request(OTHER)
    assert [(each.verdict, each.reason) for each in cloud.shadow.recent] == [
        ("unknown", "1 requests wait for Nova's choice already")
    ]
    cloud.claim(ME, "h0")
    assert cloud.verdicts()[1:] == [("same", ("h0",), ("h0",))]
