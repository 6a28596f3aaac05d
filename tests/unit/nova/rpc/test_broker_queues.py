"""The queues of a server by the options of nova.conf."""

from msgspec.structs import replace

from roost.nova.rpc.broker_options import Broker, BrokerOptions, QuorumLimits
from roost.nova.rpc.broker_queues import plan_queues
from roost.nova.rpc.link_thread import pause_s

OPTIONS = BrokerOptions(brokers=(Broker(host="h"),), host="ctl1")


def plan(**options):
    return plan_queues(replace(OPTIONS, **options), "scheduler", fanout_id="f" * 32)


def test_default_queues_are_those_of_oslo_messaging():
    shared, own, copies = plan()
    assert [queue.name for queue in (shared, own, copies)] == [
        "scheduler",
        "scheduler.ctl1",
        f"scheduler_fanout_{'f' * 32}",
    ]
    assert [queue.routing_key for queue in (shared, own, copies)] == ["scheduler", "scheduler.ctl1", "scheduler"]
    assert (shared.exchange.name, shared.exchange.kind, shared.exchange.is_durable) == ("nova", "topic", False)
    assert (shared.is_durable, shared.is_auto_delete, shared.arguments) == (False, False, {})
    assert (copies.exchange.name, copies.exchange.kind) == ("scheduler_fanout", "fanout")
    assert (copies.exchange.is_durable, copies.exchange.is_auto_delete) == (False, True)
    assert (copies.is_durable, copies.is_auto_delete, copies.arguments) == (False, False, {"x-expires": 1_800_000})


def test_durable_and_deleted_queues_follow_the_options():
    shared, own, copies = plan(amqp_durable_queues=True, amqp_auto_delete=True)
    assert shared.is_durable
    assert own.is_auto_delete
    assert shared.exchange.is_durable
    assert shared.exchange.is_auto_delete
    assert not copies.is_durable


def test_quorum_queues_are_durable_and_have_their_limits():
    shared, _, copies = plan(rabbit_quorum_queue=True, quorum_limits=QuorumLimits(delivery_limit=3))
    assert shared.is_durable
    assert shared.arguments == {"x-queue-type": "quorum", "x-delivery-limit": 3}
    assert copies.arguments == {"x-expires": 1_800_000}
    _, _, copies = plan(rabbit_transient_quorum_queue=True, rabbit_transient_queues_ttl=0)
    assert copies.is_durable
    assert copies.exchange.is_durable
    assert copies.arguments == {"x-queue-type": "quorum"}


def test_mirrored_queues_have_their_policy():
    assert plan(rabbit_ha_queues=True)[0].arguments == {"x-ha-policy": "all"}


def test_all_brokers_get_an_attempt_before_a_growing_pause():
    two = replace(OPTIONS, brokers=(Broker(host="a"), Broker(host="b")))
    assert [pause_s(two, failures) for failures in range(1, 7)] == [0, 1, 0, 3, 0, 5]
    assert pause_s(OPTIONS, 1) == 1
    assert pause_s(OPTIONS, 100) == 30
