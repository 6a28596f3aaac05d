"""Calls of oslo.messaging itself, from the environment of the reference."""

import json
import subprocess
import threading
from pathlib import Path

import pytest

from roost.nova.rpc.rpc_failure import build_failure
from tests.differential.scheduler import nova
from tests.nova.rpc_callers import served
from tests.support.missing_programs import skip_test
from tests.support.wait import wait_until

pytestmark = pytest.mark.differential


@pytest.fixture
def oslo(broker, options, service):
    """Yield a function that sends a message with oslo.messaging, and one that waits for its outcome."""
    program = nova.python()
    if program is None:
        skip_test(nova.HOW_TO_INSTALL)
    script = Path(__file__).with_name("oslo_caller.py")
    with subprocess.Popen(
        [program, "-I", script, broker.url, options.control_exchange, service.topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:

        def send(method, *, kind="call", version="4.5", prepare=None, **args):
            request = {"kind": kind, "method": method, "args": args, "prepare": {"version": version, **(prepare or {})}}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()

        def wait():
            line = process.stdout.readline()
            assert line, "oslo.messaging ended; run oslo_caller.py by hand to see why"
            return json.loads(line)

        yield send, wait
        process.stdin.close()
        process.wait(timeout=60)


@pytest.fixture
def ask(oslo):
    """Return a function that sends a message with oslo.messaging, and returns its outcome."""
    send, wait = oslo

    def ask(method, **more):
        send(method, **more)
        return wait()

    return ask


def test_calls_and_casts_arrive(ask, service, options):
    with served(options, service) as server:
        assert ask("echo", hosts=["a", None])["result"] == {"hosts": ["a", None]}
        ask("keep", kind="cast", version="4.2", host_name="x")
        ask("keep", kind="cast", version="4.1", prepare={"fanout": True}, host_name="y")
        wait_until(lambda: server.state.casts == 2)
        context = service.calls[-1].context
        assert (context.user_id, context.project_id, context.request_id) == ("a-user", "ops", "req-oslo")


def test_failure_is_rebuilt_as_the_class_of_nova(ask, service, options):
    text = "No valid host was found. There are not enough hosts available."
    failure = build_failure("NoValidHost", "nova.exception", text, reason="There are not enough hosts", code=500)
    service.handlers["run"] = lambda call: call.fail(failure)
    with served(options, service):
        outcome = ask("run")
    assert (outcome["class"], outcome["module"]) == ("NoValidHost_Remote", "nova.exception_Remote")
    assert "NoValidHost" in outcome["bases"]
    assert outcome["text"].startswith(text)
    assert outcome["kwargs"] == {"reason": "There are not enough hosts", "code": 500}


def test_refused_messages_are_remote_errors(ask, service, options):
    with served(options, service):
        for version in ("4.0", "4.4", "4.6"):
            outcome = ask("echo", version=version)
            assert (outcome["class"], outcome["exc_type"]) == ("RemoteError", "UnsupportedVersion")
        outcome = ask("run")
        assert (outcome["class"], outcome["exc_type"]) == ("RemoteError", "NoSuchMethod")


def test_internal_error_is_an_error_of_the_call(ask, service, options):
    service.handlers["run"] = lambda call: call.answer(object())
    with served(options, service):
        outcome = ask("run")
    assert outcome["class"] == "RuntimeError"
    assert "internal error" in outcome["text"]


def test_slow_call_lives_longer_than_its_monitor_timeout(ask, service, options):
    service.handlers["run"] = lambda call: threading.Timer(4.0, call.answer, ["done"]).start()
    with served(options, service):
        assert ask("run", prepare={"call_monitor_timeout": 1, "timeout": 60})["result"] == "done"


def test_silent_call_ends_at_its_monitor_timeout(ask, options, service):
    with served(options, service) as server:
        server.stop(0)
    outcome = ask("run", prepare={"call_monitor_timeout": 1, "timeout": 60})
    assert outcome["class"] == "MessagingTimeout"


def test_call_in_flight_gets_its_answer_after_a_restart_of_the_broker(oslo, broker, service, options):
    send, wait = oslo
    with served(options, service) as server:
        send("keep")
        wait_until(lambda: service.calls)
        broker.kill()
        wait_until(lambda: not server.state.connected)
        service.calls[0].answer("survived")
        broker.start()
        assert wait()["result"] == "survived"
