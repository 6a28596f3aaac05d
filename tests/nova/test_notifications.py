"""Notifications of nova-scheduler and of Roost about the same requests, from a real broker."""

import json

import amqp
import pytest

from tests.nova.nova_clouds import new_uuid
from tests.nova.nova_schedulers import open_duel
from tests.nova.rpc_callers import SECRET
from tests.support.nova_messages import cell_mapping, destination, flavor, instance_group, nova_object
from tests.support.wait import wait_until

pytestmark = pytest.mark.differential

OPTIONS = {
    "oslo_messaging_notifications": {"driver": "messagingv2\ndriver = messaging", "topics": "notifications,billing"},
    "notifications": {"notification_format": "both"},
}
UNVERSIONED, VERSIONED = "notifications.info", "versioned_notifications.info"
QUEUES = (UNVERSIONED, "billing.info", VERSIONED)
START, END = "scheduler.select_destinations.start", "scheduler.select_destinations.end"
# Different for each message, or for each process.
OWN = {"message_id", "timestamp", "_unique_id", "_context_timestamp"}
# Of an object that shows its attributes: Roost does not publish the context of the user, and the order of changes and
# the instance come from sets and from the versioned payload.
MEANT = {"_context", "_changed_fields", "_obj_instance_uuid"}
PASSWORD = "s3cret-of-the-cell"
FLAVOR = {"disabled": False, "is_public": True, "created_at": "2026-11-23T08:05:57Z", "description": None}


@pytest.fixture(scope="module")
def duel(shared_broker, tmp_path_factory):
    """Yield a cloud of three hosts whose nova.conf wants all notifications, and a caller of nova-scheduler."""
    with open_duel(shared_broker, tmp_path_factory, "notifications", OPTIONS) as (cloud, caller):
        (cell,) = cloud.database.cells
        for name in ("h0", "h1", "h2"):
            cloud.add_host(cell, name, traits=["OWNER_NOVA"])
        yield cloud, caller


@pytest.fixture
def cloud(duel):
    return duel[0]


@pytest.fixture
def theirs(duel):
    """Return the caller of nova-scheduler."""
    return duel[1]


def take(broker, count):
    """Wait for a number of messages in all queues; return them by queue, decoded, with their properties."""
    connection = broker.connect()
    found = {queue: [] for queue in QUEUES}

    def read():
        for queue, messages in found.items():
            channel = connection.channel()
            try:
                while (message := channel.basic_get(queue, no_ack=True)) is not None:
                    # nova-scheduler also announces its service record.
                    if "service.create" not in message.body:
                        messages.append((json.loads(message.body), message.properties))
            except amqp.exceptions.NotFound:
                pass  # The first notification creates the queue.
            channel.close()
        return sum(map(len, found.values())) >= count

    try:
        wait_until(read)
    finally:
        connection.close()
    return found


def plain(value):
    """Return a message without what is its own."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: plain(each) for name, each in value.items() if name not in OWN | MEANT}


def opened(outer):
    """Return the content of a message, and whether it has an envelope."""
    if "oslo.message" not in outer:
        return plain(outer), False
    assert outer["oslo.version"] == "2.0"
    return plain(json.loads(outer["oslo.message"])), True


def notifications(cloud, caller, *uuids, count, is_refused=False, **fields):
    """Send one request to a scheduler; return its notifications by queue, and release the claims."""
    reply = cloud.reply_of(caller, *uuids, **fields)
    assert is_refused == (reply["failure"] is not None), reply
    found = take(caller.broker, count)
    cloud.release(*uuids)
    return found


def of_both(cloud, theirs, *uuids, **fields):
    """Return the notifications of both schedulers by queue: content, envelope, and properties."""
    return [
        {
            queue: [(*opened(body), properties) for body, properties in messages]
            for queue, messages in notifications(cloud, each, *uuids, **fields).items()
        }
        for each in (theirs, cloud.caller)
    ]


# Two topics with two drivers, and one versioned topic with two drivers, for each event.
PER_EVENT = 6
REQUESTS = {
    "plain": {},
    "ports and forced hosts": {
        "force_hosts": ["h1"],
        "requested_destination": destination(aggregates=None, allow_cross_cell_move=False),
        "security_groups": nova_object(
            "SecurityGroupList", "1.1", objects=[nova_object("SecurityGroup", "1.2", name="default")]
        ),
        "retry": nova_object(
            "SchedulerRetries", "1.1", num_attempts=1, hosts=nova_object("ComputeNodeList", "1.17", objects=[])
        ),
    },
    "hints and a volume": {
        "image": nova_object(
            "ImageMeta", "1.8", min_disk=0, properties=nova_object("ImageMetaProps", "1.44", hw_machine_type="q35")
        ),
        "is_bfv": True,
        "scheduler_hints": {"a": ["1", "2"]},
        "ignore_hosts": ["h0"],
    },
}


def assert_same(expected, found):
    """Compare notifications of both schedulers, and name the first difference."""
    for queue in QUEUES:
        assert len(found[queue]) == len(expected[queue]), queue
        for one, other in zip(found[queue], expected[queue], strict=True):
            differing = {
                path: (leaves(one).get(path, "missing"), leaves(other).get(path, "missing"))
                for path in leaves(one).keys() | leaves(other).keys()
                if leaves(one).get(path, "missing") != leaves(other).get(path, "missing")
            }
            assert not differing, (queue, differing)


def leaves(value, path=""):
    """Return the values of a nested structure by their paths."""
    if isinstance(value, dict) and value:
        pairs = value.items()
    elif isinstance(value, list | tuple) and value:
        pairs = enumerate(value)
    else:
        return {path: value}
    return {name: leaf for key, each in pairs for name, leaf in leaves(each, f"{path}/{key}").items()}


@pytest.mark.parametrize("fields", REQUESTS.values(), ids=REQUESTS)
def test_both_send_the_same_notifications(cloud, theirs, fields):
    number = new_uuid()
    fields = {"flavor": flavor(**FLAVOR), "instance_uuid": number, **fields}
    expected, found = of_both(cloud, theirs, number, count=2 * PER_EVENT, **fields)
    assert_same(expected, found)
    for queue in (UNVERSIONED, VERSIONED):
        events = [(content["event_type"], has_envelope) for content, has_envelope, _ in found[queue]]
        assert events == [(START, False), (START, True), (END, False), (END, True)]


def test_zone_group_and_destination_appear_as_in_nova(cloud, theirs):
    number, (cell,) = new_uuid(), cloud.database.cells
    zone = cloud.database.add_aggregate("east", hosts=["h2"], metadata={"availability_zone": "east"})
    cloud.set_aggregates(cloud.hosts()["h2"]["uuid"], zone)
    cloud.cast_aggregates([(zone, "east", ["h2"], {"availability_zone": "east"})])
    wait_until(lambda: cloud.metadata_of(zone) == {"availability_zone": "east"})
    group = instance_group(new_uuid(), "anti-affinity", number, max_server_per_host="2")
    group["nova_object.data"] |= {"hosts": ["h0"], "user_id": "a-user", "project_id": "ops"}
    expected, found = of_both(
        cloud,
        theirs,
        number,
        count=2 * PER_EVENT,
        flavor=flavor(**FLAVOR),
        instance_uuid=number,
        availability_zone="east",
        instance_group=group,
        requested_destination=destination(cell=cell_mapping(cell, password=PASSWORD), allow_cross_cell_move=False),
    )
    assert_same(expected, found)
    ((content, *_), *_) = found[VERSIONED][-1:]
    payload = content["payload"]["nova_object.data"]
    assert payload["requested_destination"]["nova_object.data"]["aggregates"] == [zone]
    assert payload["instance_group"]["nova_object.data"]["hosts"] == ["h0", "h2"]
    assert PASSWORD not in json.dumps(found)
    assert SECRET not in json.dumps(found)


def test_several_instances_end_with_the_last_one(cloud, theirs):
    first, last = new_uuid(), new_uuid()
    fields = {"flavor": flavor(**FLAVOR), "instance_uuid": first, "num_instances": 2}
    expected, found = of_both(cloud, theirs, first, last, count=2 * PER_EVENT, **fields)
    assert_same(expected, found)
    uuids = [content["payload"]["nova_object.data"]["instance_uuid"] for content, *_ in found[VERSIONED]]
    assert uuids == [first, first, last, last]


def test_refusal_by_filters_only_starts_and_refusal_by_placement_sends_nothing(cloud, theirs):
    number = new_uuid()
    fields = {"flavor": flavor(vcpus=9, **FLAVOR), "instance_uuid": number}
    for caller in (theirs, cloud.caller):
        assert cloud.reply_of(caller, number, **fields)["failure"] is not None
    fields = {"flavor": flavor(**FLAVOR), "instance_uuid": number, "ignore_hosts": ["h0", "h1", "h2"]}
    expected, found = of_both(cloud, theirs, number, count=PER_EVENT, is_refused=True, **fields)
    assert_same(expected, found)
    assert {content["event_type"] for messages in found.values() for content, *_ in messages} == {START}


def test_check_of_a_rebuild_starts_and_ends(cloud, theirs):
    fields = {
        "flavor": flavor(**FLAVOR),
        "instance_uuid": new_uuid(),
        "scheduler_hints": {"_nova_check_type": ["rebuild"]},
        "force_hosts": ["h1"],
        "force_nodes": ["h1"],
    }
    expected, found = of_both(cloud, theirs, count=2 * PER_EVENT, **fields)
    assert_same(expected, found)


def test_queues_have_the_flags_of_oslo_messaging(cloud, theirs):
    number = new_uuid()
    of_both(cloud, theirs, number, count=2 * PER_EVENT, flavor=flavor(**FLAVOR), instance_uuid=number)
    for broker in (cloud.broker, theirs.broker):
        connection = broker.connect()
        for queue in QUEUES:
            connection.channel().queue_declare(queue, durable=False, exclusive=False, auto_delete=False)
            with pytest.raises(amqp.exceptions.PreconditionFailed):
                connection.channel().queue_declare(queue, durable=True, exclusive=False, auto_delete=False)
        connection.close()
