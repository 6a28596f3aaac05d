"""When the service sends notifications, and what a decision adds to them."""

import json

import msgspec
import pytest

from roost.machine import SystemClock
from roost.model.fleet import Fleet
from roost.model.host import Aggregate
from roost.model.settings.roost_settings import Settings
from roost.nova.notifications.notification_options import NotificationOptions
from roost.nova.notifications.notification_sender import NotificationSender
from roost.nova.notifications.selection_notifier import SelectionNotifier
from roost.nova.rpc.broker_options import BrokerOptions
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import host, roost_with, small_request
from tests.support.nova_conductors import conductor
from tests.support.nova_messages import destination, flavor, instance_group

ME, OTHER, GROUP, EAST = (uuid_named(name) for name in ("me", "other", "group", "east"))
ZONE = Fleet(aggregates=[Aggregate(uuid=EAST, name="e", metadata={"availability_zone": "east"})])
HOSTS = (
    host("h0", aggregates=["east"], VCPU=8, MEMORY_MB=4096),
    host("h1", VCPU=8, MEMORY_MB=4096),
    host("h2", VCPU=8, MEMORY_MB=4096),
)


@pytest.fixture
def sent(monkeypatch):
    """Return the list of messages that a notifier sends."""
    found = []

    def put(_, build, *, size):
        assert size == 0
        found.extend((outgoing.queue, json.loads(outgoing.body)) for outgoing in build())

    monkeypatch.setattr(NotificationSender, "put", put)
    return found


@pytest.fixture
def notifier(sent):
    """Yield a notifier of versioned notifications without envelopes."""
    assert not sent
    options = NotificationOptions(broker=BrokerOptions(brokers=(), host="ctl"), envelopes=(False,))
    notifier = SelectionNotifier(msgspec.structs.replace(options, versioned_topics=("v",)), clock=SystemClock())
    yield notifier
    notifier.stop()


def phases(sent):
    """Return the last part of each event."""
    return [message["event_type"].rpartition(".")[2] for _, message in sent]


def payloads(sent):
    """Return the fields of each payload."""
    return [message["payload"]["nova_object.data"] for _, message in sent]


def test_request_with_hosts_starts_and_ends(sent, notifier):
    with conductor(ZONE, *HOSTS, notifier=notifier) as nova:
        nova.select(ME, OTHER, instance_uuid=ME)
    assert phases(sent) == ["start", "end"]
    assert [each["instance_uuid"] for each in payloads(sent)] == [ME, OTHER]
    queue, message = sent[0]
    assert (queue, message["publisher_id"], message["priority"]) == ("v.info", "nova-scheduler:ctl", "INFO")
    assert (message["_context_user_id"], message["_context_auth_token"]) == ("a-user", None)


def test_only_refusals_after_the_search_start(sent, notifier):
    with conductor(ZONE, *HOSTS, notifier=notifier) as nova:
        nova.refuse(ME, flavor=flavor(vcpus=99))
        nova.refuse(ME, requested_destination=destination(host="nowhere", node=None))
        nova.refuse("nonsense")
        assert sent == []
        nova.refuse(ME, ignore_hosts=["h0", "h1", "h2"])
    assert phases(sent) == ["start"]


def test_zone_target_and_group_are_in_the_payload(sent, notifier):
    group = instance_group(GROUP, "anti-affinity", ME)
    with conductor(ZONE, *HOSTS, notifier=notifier) as nova:
        nova.select(ME, availability_zone="east", instance_group=group, force_hosts=["h0"])
    start, end = payloads(sent)
    assert start["requested_destination"]["nova_object.data"] == {"host": "h0", "node": "h0", "aggregates": [EAST]}
    assert start["instance_group"]["nova_object.data"]["hosts"] is None
    assert end["instance_group"]["nova_object.data"]["hosts"] == ["h0"]


def test_aggregates_of_a_project_are_required(sent, notifier):
    own = Fleet(aggregates=[Aggregate(uuid=EAST, name="e", metadata={"filter_tenant_id": "a-project"})])
    settings = msgspec.convert({"scheduler": {"limit_tenants_to_placement_aggregate": True}}, Settings)
    with conductor(own, *HOSTS, settings=settings, notifier=notifier) as nova:
        nova.select(ME)
    assert payloads(sent)[0]["requested_destination"]["nova_object.data"] == {"aggregates": [EAST]}


class Metadata(dict):
    """Metadata of aggregates that counts the passes over it."""

    passes = 0

    def items(self):
        """Return the items; count the pass."""
        self.passes += 1
        return super().items()


def test_equal_requests_take_one_pass_over_the_aggregates(notifier):
    roost = roost_with(ZONE, *HOSTS)
    request = msgspec.structs.replace(small_request(), availability_zone="east")
    roost.state.metadata = metadata = Metadata(roost.state.metadata)
    for _ in range(3):
        assert notifier.find_changes(request, roost.state, roost.settings).aggregates == (EAST,)
    assert metadata.passes == 1
    roost.state.changes.touch_all()
    metadata[next(iter(metadata))] = {"availability_zone": "west"}
    request = msgspec.structs.replace(request, availability_zone="west")
    assert notifier.find_changes(request, roost.state, roost.settings).aggregates == (EAST,)


def test_check_of_a_rebuild_has_no_changes(sent, notifier):
    fields = {"scheduler_hints": {"_nova_check_type": ["rebuild"]}, "force_hosts": ["h1"], "force_nodes": ["h1"]}
    with conductor(ZONE, *HOSTS, notifier=notifier) as nova:
        nova.select(**fields, availability_zone="east", instance_uuid=ME)
        nova.refuse(**{**fields, "force_hosts": ["h9"]}, instance_uuid=ME)
    assert phases(sent) == ["start", "end", "start"]
    assert {each["requested_destination"] for each in payloads(sent)} == {None}
