"""The thread that sends notifications, on a real RabbitMQ."""

import pytest
from prometheus_client import REGISTRY

from roost.nova.notifications.notification_sender import NotificationSender, Outgoing
from roost.observe import log
from tests.nova.rpc_callers import SECRET
from tests.support.wait import wait_until

pytestmark = pytest.mark.long


class Lines:
    """The events of the log."""

    def __init__(self):
        self.found = []

    def add(self, name, **fields):
        """Add an event."""
        self.found.append((name, fields))

    def drops(self):
        """Return count and problem of each line about dropped notifications."""
        return [
            (fields["count"], fields["problem"]) for name, fields in self.found if name == "nova_notifications_dropped"
        ]


@pytest.fixture
def lines(monkeypatch):
    found = Lines()
    monkeypatch.setattr(log, "event", found.add)
    return found


@pytest.fixture
def clock():
    """Return a clock that a test sets."""
    return [0.0]


@pytest.fixture
def sender(options, clock):
    sender = NotificationSender(options, name="test", clock=lambda: clock[0])
    yield sender
    sender.stop(0)


def put(sender, text, *, size=0, queue="news"):
    sender.put(lambda: [Outgoing(queue, text.encode())], size=size)


def bodies(broker, queue="news"):
    """Return all messages of a queue."""
    connection = broker.connect()
    channel, found = connection.channel(), []
    while (message := channel.basic_get(queue, no_ack=True)) is not None:
        found.append(message.body)
    connection.close()
    return found


def count(outcome):
    return REGISTRY.get_sample_value("roost_nova_notifications_total", {"outcome": outcome}) or 0.0


def test_messages_wait_in_order_for_a_queue_that_nobody_consumes(broker, sender):
    before = count("sent")
    sender.start()
    for number in range(200):
        put(sender, str(number))
    sender.stop(30)
    assert bodies(broker) == [str(number) for number in range(200)]
    assert count("sent") - before == 200


def test_without_a_broker_the_newest_are_dropped_and_the_rest_arrive_later(broker, sender, lines, clock):
    broker.kill()
    before = count("dropped")
    sender.start()
    for number in range(1003):
        put(sender, str(number), queue="late")
    assert count("dropped") - before == 3
    assert lines.drops() == [(1, "1,000 events wait already")]
    clock[0] = 61.0
    put(sender, "1003", queue="late")
    assert lines.drops()[1:] == [(3, "1,000 events wait already")]
    broker.start()
    sender.stop(60)
    assert bodies(broker, "late") == [str(number) for number in range(1000)]


def test_large_events_are_limited_by_their_bytes(sender, lines):
    for _ in range(3):
        put(sender, "large", size=20 * 1024 * 1024)
    assert lines.drops() == [(1, "1 events wait already")]


def test_event_that_cannot_be_described_is_dropped_without_its_text(broker, sender, lines):
    def fail():
        raise ValueError(SECRET)

    sender.start()
    sender.put(fail, size=0)
    put(sender, "next", queue="other")
    sender.stop(30)
    assert bodies(broker, "other") == ["next"]
    assert lines.drops() == [(1, "an event cannot be described: ValueError")]
    assert SECRET not in str(lines.found)


def test_stop_without_a_broker_names_what_is_lost(broker, sender, lines):
    broker.kill()
    sender.start()
    put(sender, "lost")
    sender.stop(0.1)
    assert lines.drops() == [(1, "the service stopped")]


def test_existing_queue_with_other_flags_is_used_as_it_is(broker, sender, lines):
    connection = broker.connect()
    connection.channel().queue_declare("durable", durable=True, auto_delete=False)
    sender.start()
    put(sender, "text", queue="durable")
    sender.stop(30)
    assert bodies(broker, "durable") == ["text"]
    wait_until(lambda: "rpc_queue_differs" in dict(lines.found))
    connection.close()
