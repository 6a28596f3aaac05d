"""A server that takes copies of the messages to another server, on a real RabbitMQ."""

import amqp
import pytest
from msgspec.structs import replace

from tests.nova.rpc_callers import Service, served
from tests.support.wait import wait_until

pytestmark = pytest.mark.long


def test_copies_reach_the_second_server_and_only_the_first_one_replies(options, service, caller):
    shadow = Service(topic=service.topic)
    with served(options, service), served(replace(options, host="two"), shadow, takes_copies=True) as copies:
        for number in range(5):
            assert caller.call("echo", {"number": number})["result"] == {"number": number}
        wait_until(lambda: len(shadow.calls) == 5)
        assert [call.args for call in shadow.calls] == [{"number": number} for number in range(5)]
        assert not any(call.needs_reply for call in shadow.calls)
        assert (copies.state.open_calls, copies.state.answered) == (0, 0)
    assert len(service.calls) == 5


def test_queue_of_copies_ends_with_its_server(broker, options, service):
    with served(options, service, takes_copies=True):
        name = f"{service.topic}.{options.host}.copies"
        with broker.connect() as connection:
            assert connection.channel().queue_declare(name, passive=True).queue == name
    with broker.connect() as connection, pytest.raises(amqp.exceptions.NotFound):
        connection.channel().queue_declare(name, passive=True)


def test_copies_do_not_take_messages_from_the_queue_of_the_topic(options, service, caller):
    shadow = Service(topic=service.topic)
    with served(options, service):
        pass  # The queue of the topic stays, and has no consumer now.
    with served(replace(options, host="two"), shadow, takes_copies=True):
        identifier = caller.send("echo", {"number": 1})
        wait_until(lambda: len(shadow.calls) == 1)
        with served(options, service):
            (reply,) = caller.wait(identifier)
            assert reply["result"] == {"number": 1}
