"""A server whose broker is killed, silent, full, or has lost the queue of a caller."""

import socket
import threading
import uuid

import pytest
from msgspec.structs import replace

from roost.nova.rpc.broker_link import Timeouts
from roost.nova.rpc.broker_options import Broker as BrokerAddress
from roost.nova.rpc.rpc_server import RpcServer
from roost.observe import log
from tests.nova.rpc_callers import Caller, served
from tests.support.wait import wait_until

pytestmark = pytest.mark.long
QUICK = Timeouts(connect_s=1.0, operation_s=2.0, confirm_s=2.0)


@pytest.fixture
def silent_address():
    """Yield the address of a program that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield BrokerAddress(host="127.0.0.1", port=listener.getsockname()[1])


@pytest.fixture
def closed_address():
    """Return an address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return BrokerAddress(host="127.0.0.1", port=listener.getsockname()[1])


def test_reply_of_a_call_in_flight_arrives_after_a_restart_of_the_broker(broker, options, service, caller):
    with served(options, service) as server:
        identifier = caller.send("keep")
        wait_until(lambda: service.calls)
        caller.close()
        broker.kill()
        wait_until(lambda: not server.state.connected)
        service.calls[0].answer("survived")
        assert server.state.open_calls == 0
        broker.start()
        wait_until(lambda: server.state.connected)
        caller.connect()  # As oslo.messaging does, it creates its queue again after the server is back.
        assert caller.wait(identifier)[-1]["result"] == "survived"
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}
        assert server.state.reconnects >= 2


def test_server_starts_before_its_broker(broker, options, service):
    broker.kill()
    server = RpcServer(options, service)
    server.start()
    wait_until(lambda: server.state.last_error)
    assert not server.state.connected
    broker.start()
    wait_until(lambda: server.state.connected)
    caller = Caller(broker, options, service.topic)
    assert caller.call("echo", {"a": 1})["result"] == {"a": 1}
    server.stop(0)
    caller.close()


def test_lost_connections_are_opened_again(broker, options, service, caller):
    with served(options, service) as server:
        caller.call("echo")
        broker.control("close_all_connections", "a test")
        wait_until(lambda: server.state.reconnects >= 2 and server.state.connected)
        caller.close()
        caller.connect()
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}


def test_silent_and_missing_brokers_are_passed_over(options, service, caller, silent_address, closed_address):
    options = replace(options, brokers=(silent_address, closed_address, *options.brokers))
    with served(options, service, timeouts=QUICK) as server:
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}
        assert server.state.broker == options.brokers[2].address


def test_silent_broker_hangs_no_stop(options, service, silent_address):
    server = RpcServer(replace(options, brokers=(silent_address,)), service, timeouts=QUICK)
    server.start()
    wait_until(lambda: server.state.last_error)
    server.stop(0)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("roost-rpc")]


def test_broker_that_sends_no_amqp_is_tried_again(options, service):
    def talk():
        for _ in range(4):
            connection, _ = listener.accept()
            connection.sendall(b"\x01\x00\x00\x00\x00\x00\x05hello\xce" * 3)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        talker = threading.Thread(target=talk)
        talker.start()
        address = BrokerAddress(host="127.0.0.1", port=listener.getsockname()[1])
        events = []
        with log.redirect_events(events.append):
            server = RpcServer(replace(options, brokers=(address,)), service, timeouts=QUICK)
            server.start()
            talker.join()
            server.stop(0)
    assert [event for event in events if event["event"] == "rpc_broker_lost"]


def test_wrong_password_is_reported_without_it(options, service):
    options = replace(options, brokers=(replace(options.brokers[0], password="hunter2"),))
    events = []
    with log.redirect_events(events.append):
        server = RpcServer(options, service)
        server.start()
        wait_until(lambda: server.state.last_error)
        server.stop(0)
    assert "ACCESS_REFUSED" in server.state.last_error
    assert "hunter2" not in repr(events) + repr(options)


def test_reply_to_a_missing_queue_is_dropped_and_the_rest_arrive(options, service, caller):
    options = replace(options, missing_queue_s=1)
    events = []
    with log.redirect_events(events.append), served(options, service, calls_max=2) as server:
        for _ in range(10):
            caller.send("echo", _reply_q=f"reply_{uuid.uuid4().hex}", _msg_id="gone")
        caller.send("keep", _reply_q="reply_missing", _msg_id="gone", timeout=0.4)
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}
        wait_until(lambda: server.state.replies_dropped == 10)
        assert server.state.connected
        assert server.state.reconnects == 0
    assert [event["event"] for event in events].count("rpc_reply_dropped") == 10


def test_queue_that_an_operator_deletes_is_created_again(options, service, caller):
    with served(options, service) as server:
        caller.channel.queue_delete(service.topic)
        wait_until(lambda: server.state.reconnects >= 1 and server.state.connected)
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}


def test_replies_wait_while_the_broker_has_no_memory(broker, options, service, caller):
    with served(options, service, timeouts=QUICK) as server:
        identifiers = [caller.send("keep") for _ in range(20)]
        wait_until(lambda: len(service.calls) == 20)
        broker.control("set_vm_memory_high_watermark", "absolute", "1")
        try:
            for call in service.calls:
                call.answer("later")
            blocked_s = 2 * QUICK.confirm_s
            threading.Event().wait(blocked_s)
            assert server.state.connected
            caller.read()
            assert caller.replies == []
        finally:
            broker.control("set_vm_memory_high_watermark", "0.4")
        for identifier in identifiers:
            assert caller.wait(identifier)[-1]["result"] == "later"
        assert server.state.connected
        assert server.state.reconnects == 0


def test_heartbeats_keep_an_idle_connection(options, service, caller):
    with served(replace(options, heartbeat_timeout_threshold=1), service) as server:
        threading.Event().wait(5)
        assert server.state.connected
        assert server.state.reconnects == 0
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}


def test_broker_that_falls_silent_is_left_after_its_heartbeats(broker, options, service, caller):
    options = replace(options, heartbeat_timeout_threshold=1)
    with served(options, service, timeouts=QUICK) as server:
        identifier = caller.send("keep")
        wait_until(lambda: service.calls)
        broker.pause()
        try:
            wait_until(lambda: not server.state.connected)
            service.calls[0].answer("later")
        finally:
            broker.resume()
        assert caller.wait(identifier)[-1]["result"] == "later"
