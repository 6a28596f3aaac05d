"""A server on a real RabbitMQ: calls, casts and failures, with a caller made of AMQP alone."""

import json
import queue
import re
import threading

import pytest
from msgspec.structs import replace
from prometheus_client import REGISTRY

from roost.nova.rpc.rpc_failure import build_failure
from roost.nova.rpc.rpc_server import RpcServer
from roost.observe import log
from tests.nova.rpc_callers import SECRET, Caller, Service, served
from tests.support.wait import wait_until

pytestmark = pytest.mark.long


def test_answer_has_the_fields_and_properties_of_oslo_messaging(options, service, caller):
    with served(options, service) as server:
        identifier = caller.send("echo", {"hosts": ["ä", None, 1.5]})
        (reply,) = caller.wait(identifier)
        assert re.fullmatch("[0-9a-f]{32}", reply.pop("_unique_id"))
        assert reply == {
            "result": {"hosts": ["ä", None, 1.5]},
            "failure": None,
            "ending": True,
            "_msg_id": identifier,
        }
        (properties,) = caller.properties
        assert properties == {
            "content_type": "application/json",
            "content_encoding": "utf-8",
            "delivery_mode": 2,
            "priority": 0,
        }
        wait_until(lambda: server.state.open_calls == 0)
        assert server.state.answered == 1


def test_metrics_count_messages_and_replies(options, service, caller):
    def read(name, **labels):
        return REGISTRY.get_sample_value(name, labels) or 0.0

    def counts():
        kinds = {kind: read("roost_nova_messages_total", kind=kind) for kind in ("call", "cast", "malformed")}
        return {**kinds, "answered": read("roost_nova_replies_total", outcome="answered")}

    before = counts()
    with served(options, service):
        assert [read("roost_nova_connected", connection=role) for role in ("receiver", "sender")] == [1, 1]
        caller.send("echo", is_cast=True)
        caller.send_body(b"")
        caller.call("echo")
        after = counts()
    assert {name: after[name] - before[name] for name in after} == dict.fromkeys(after, 1)
    assert [read("roost_nova_connected", connection=role) for role in ("receiver", "sender")] == [0, 0]


def test_call_has_its_identity_and_no_secret(options, service, caller):
    with served(options, service):
        caller.call("echo", {"password": SECRET})
    (call,) = service.calls
    assert service.threads == {"roost-rpc-receiver"}
    assert (call.context.user_id, call.context.project_id, call.context.request_id) == ("a-user", "ops", "req-1")
    assert (call.context.is_admin, call.context.roles) == (True, ("admin", "reader"))
    assert SECRET not in repr(call) + repr(call.context)


def test_failure_names_its_class_and_no_file_of_this_machine(options, service, caller):
    text = "No valid host was found. There are not enough hosts available."
    failure = build_failure("NoValidHost", "nova.exception", text, reason="There are not enough…", code=500)
    service.handlers["echo"] = lambda call: call.fail(failure)
    with served(options, service):
        reply = caller.call("echo")
    assert (reply["result"], reply["ending"]) == (None, True)
    assert json.loads(reply["failure"]) == {
        "class": "NoValidHost",
        "module": "nova.exception",
        "message": text,
        "tb": [f"NoValidHost: {text}\n"],
        "args": [text],
        "kwargs": {"reason": "There are not enough…", "code": 500},
    }


@pytest.mark.parametrize("version", ["4.0", "4.1", "4.2", "4.3", "4.4", "4.6", "5.0", "3.9", "4", "x", "4.٥"])
def test_call_of_another_version_is_refused(options, service, caller, version):
    with served(options, service):
        failure = json.loads(caller.call("echo", version=version)["failure"])
    assert (failure["class"], failure["module"]) == ("UnsupportedVersion", "oslo_messaging.rpc.dispatcher")
    assert failure["args"] == [f"Endpoint does not support RPC version {version}. Attempted method: echo"]
    assert not service.calls


def test_unknown_method_is_refused(options, service, caller):
    with served(options, service) as server:
        failure = json.loads(caller.call("run")["failure"])
        assert server.state.refused == 1
    assert (failure["class"], failure["module"]) == ("NoSuchMethod", "oslo_messaging.rpc.dispatcher")


def test_base_interface_answers_a_ping(options, service, caller):
    with served(options, service):
        assert caller.call("ping", {"arg": "x"}, namespace="baseapi", version="1.1")["result"] == {
            "service": service.topic,
            "arg": "x",
        }
        failures = [
            json.loads(caller.call("ping", namespace=namespace, version=version)["failure"])["class"]
            for namespace, version in (("baseapi", "1.2"), ("other", "1.1"))
        ]
        assert failures == ["UnsupportedVersion", "UnsupportedVersion"]
        failure = json.loads(caller.call("get_backdoor_port", namespace="baseapi", version="1.1")["failure"])
        assert failure["class"] == "NoSuchMethod"


def test_casts_of_lower_versions_arrive_by_fanout_and_get_no_reply(options, service, caller):
    with served(options, service) as server:
        caller.send("keep", {"host_name": "a"}, version="4.2", is_cast=True, is_fanout=True)
        caller.send("echo", {"host_name": "b"}, version="4.1", is_cast=True)
        wait_until(lambda: len(service.calls) == 2)
        caller.call("echo")
        assert {call.args.get("host_name") for call in service.calls} == {"a", "b", None}
        assert len(caller.replies) == 1
        assert (server.state.casts, server.state.received) == (2, 3)


def test_error_of_a_handler_is_an_internal_error_and_the_server_goes_on(options, service, caller):
    def fail(_):
        raise ValueError(SECRET)

    service.handlers["run"] = fail
    service.handlers["odd"] = lambda call: call.answer(object())
    events = []
    with log.redirect_events(events.append), served(options, service):
        for method in ("run", "odd"):
            failure = json.loads(caller.call(method)["failure"])
            assert (failure["class"], failure["module"]) == ("RuntimeError", "builtins")
            assert SECRET not in json.dumps(failure)
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}
    assert [event["event"] for event in events].count("fault") == 2


def test_second_answer_is_ignored(options, service, caller):
    def answer(call):
        call.answer(1)
        call.answer(2)
        call.fail(build_failure("NoValidHost", "nova.exception", "x"))

    service.handlers["run"] = answer
    events = []
    with log.redirect_events(events.append), served(options, service):
        assert caller.call("run")["result"] == 1
        caller.call("echo")
        assert len(caller.replies) == 2
    assert [event["event"] for event in events].count("rpc_answer_ignored") == 2


def test_caller_gets_signs_of_life_until_the_answer(options, service, caller):
    with served(options, service):
        identifier = caller.send("keep", timeout=0.5)
        wait_until(lambda: caller.read() or len(caller.replies) >= 3)
        service.calls[0].answer("done")
        replies = caller.wait(identifier)
    sign = {"result": None, "failure": None, "ending": False, "_msg_id": identifier}
    for reply in replies[:-1]:
        assert {name: value for name, value in reply.items() if name != "_unique_id"} == sign
    assert replies[-1]["result"] == "done"
    assert len({reply["_unique_id"] for reply in replies}) == len(replies)


def test_repetition_of_a_message_is_dropped(options, service, caller):
    with served(options, service) as server:
        for _ in range(3):
            caller.send("echo", _unique_id="f" * 32)
        caller.call("echo")
        assert len(service.calls) == 2
        assert server.state.duplicates == 2
        for number in range(16):
            caller.send("echo", _unique_id=f"{number:032x}")
        caller.send("echo", _unique_id="f" * 32)  # Only the last 16 are known.
        wait_until(lambda: len(service.calls) == 19)


MALFORMED = {
    "nothing": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"oslo.version": "2.0", "oslo.message": "\xff"}',
    "no object": b"[1, 2]",
    "no envelope": b'{"method": "echo", "args": {}}',
    "another envelope": b'{"oslo.version": "3.0", "oslo.message": "{}"}',
    "no text inside": b'{"oslo.version": "2.0", "oslo.message": {"method": "echo"}}',
    "no method": b'{"oslo.version": "2.0", "oslo.message": "{}"}',
    "args of another type": b'{"oslo.version": "2.0", "oslo.message": "{\\"method\\": \\"echo\\", \\"args\\": [1]}"}',
    "deep": json.dumps({"oslo.version": "2.0", "oslo.message": '{"method": "echo", "args": ' + '{"a":' * 100_000}),
    "a long name": json.dumps({"oslo.version": "2.0", "oslo.message": json.dumps({"method": "e" * 300})}),
}


def test_malformed_messages_are_dropped_with_one_line_each(options, service, caller):
    events = []
    with log.redirect_events(events.append), served(options, service) as server:
        for body in MALFORMED.values():
            caller.send_body(body)
        caller.send_body(b"\x80\x04", content_encoding="zlib_codec", content_type="application/x-python")
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}
        assert server.state.poisoned == len(MALFORMED) + 1
        assert server.state.connected
        assert server.state.reconnects == 0
    lines = [event for event in events if event["event"] == "rpc_message_malformed"]
    assert len(lines) == len(MALFORMED) + 1
    assert all(len(line["problem"]) < 200 for line in lines)


@pytest.mark.parametrize(
    ("before", "arguments"),
    [
        ({"durable": True}, {}),
        ({"auto_delete": True}, {}),
        ({"durable": True}, {"x-queue-type": "quorum"}),
        ({}, {"x-max-length": 5}),
    ],
    ids=str,
)
def test_queue_with_other_flags_is_used_as_it_is(options, service, caller, before, arguments):
    caller.channel.queue_declare(service.topic, **{"auto_delete": False, **before}, arguments=arguments)
    caller.channel.exchange_declare(options.control_exchange, "topic", durable=True, auto_delete=False)
    events = []
    with log.redirect_events(events.append), served(options, service):
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}
    differing = {event["object"] for event in events if event["event"] == "rpc_queue_differs"}
    assert differing == {f"exchange {options.control_exchange}", f"queue {service.topic}"}


def test_queues_of_the_options_are_declared(broker, options, service):
    options = replace(options, rabbit_quorum_queue=True, rabbit_transient_quorum_queue=True)
    caller = Caller(broker, options, service.topic)
    with served(options, service):
        assert caller.call("echo", {"a": 1})["result"] == {"a": 1}
        caller.channel.queue_declare(
            service.topic, durable=True, auto_delete=False, arguments={"x-queue-type": "quorum"}
        )
        caller.channel.queue_declare(
            f"{service.topic}.one", durable=True, auto_delete=False, arguments={"x-queue-type": "quorum"}
        )
    caller.close()


def test_two_servers_share_the_queue_and_both_get_fanout(options, service, caller):
    other = Service(topic=service.topic)
    with served(options, service), served(options, other):
        for _ in range(20):
            caller.call("echo")
        assert len(service.calls) + len(other.calls) == 20
        assert service.calls
        assert other.calls
        caller.send("keep", {"cast": 1}, version="4.1", is_cast=True, is_fanout=True)
        wait_until(lambda: service.calls[-1].args == other.calls[-1].args == {"cast": 1})


def test_waiting_messages_are_drained_with_a_bounded_number_of_open_calls(options, service, caller):
    count, most, calls = 2_000, [], queue.SimpleQueue()
    with served(options, service):
        pass  # It has created the queue.
    identifiers = [caller.send("run", {"number": number}) for number in range(count)]
    service.handlers["run"] = calls.put

    def work():
        for number in range(count):
            call = calls.get()
            if number % 50 == 0:
                most.append(server.state.open_calls)
            call.answer(number)

    with served(options, service, calls_max=8) as server:
        worker = threading.Thread(target=work)
        worker.start()
        wait_until(lambda: caller.read() or len(caller.replies) == count)
        worker.join()
        assert max(most) <= 8
        assert server.state.answered == count
    assert {reply["_msg_id"] for reply in caller.replies} == set(identifiers)


def test_full_server_leaves_messages_to_another_one_and_takes_casts(options, service, caller):
    with served(options, service, calls_max=2) as server:
        waiting = [caller.send("keep") for _ in range(50)]
        wait_until(lambda: server.state.open_calls == 2)
        caller.send("echo", version="4.1", is_cast=True, is_fanout=True)
        wait_until(lambda: server.state.casts == 1)
        assert len(service.calls) == 3
        server.stop(0)
    other = Service(topic=service.topic, methods={"keep": lambda call: call.answer("other")})
    with served(options, other):
        wait_until(lambda: caller.read() or len(caller.replies) == 48)
    replied = {reply["_msg_id"] for reply in caller.replies}
    assert (len(replied), replied - set(waiting)) == (48, set())


def test_stop_lets_open_calls_answer_and_deletes_the_fanout_queue(options, service, caller):
    with served(options, service) as server:
        identifier = caller.send("keep")
        wait_until(lambda: service.calls)
        threading.Timer(0.5, lambda: service.calls[0].answer("late")).start()
        server.stop(30)
        assert caller.wait(identifier)[-1]["result"] == "late"
        assert not server.state.connected
    left = caller.send("keep")  # It waits for the next server.
    service.handlers["keep"] = lambda call: call.answer("next")
    with served(options, service):
        assert caller.wait(left)[-1]["result"] == "next"


def test_server_can_stop_before_its_start(options, service):
    server = RpcServer(options, service)
    server.stop(0)
    assert not server.state.connected


def test_stop_reports_calls_without_an_answer(options, service, caller):
    events = []
    with log.redirect_events(events.append), served(options, service) as server:
        caller.send("keep")
        wait_until(lambda: service.calls)
        server.stop(0.1)
        service.calls[0].answer("too late")
    (line,) = [event for event in events if event["event"] == "rpc_calls_left"]
    assert line["count"] == 1
    assert SECRET not in json.dumps(events)
