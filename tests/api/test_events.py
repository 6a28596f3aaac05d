"""Events over real sockets: streams, the events command and the webhook."""

import json
import re
import socket
import subprocess
from contextlib import ExitStack

import jsonschema
import pytest

from roost.api.v1.documents import openapi
from roost.app import open_roost
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import command, environ, fleet, roost
from tests.support.servers.event_clients import ADMIN, follow_events, webhook_receiver
from tests.support.servers.servers import read_all, serve
from tests.support.wait import wait_until

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}, "project_id": "shop"}
START, END = "scheduler.select_destinations.start", "scheduler.select_destinations.end"
PATIENCE_S = 60


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of two hosts with 4 VCPU each."""
    with open_roost(None, tmp_path) as product:
        product.install(fleet(2, vcpus=4))
    return tmp_path


def up(folder, settings="", *options):
    return serve(*options, noun="up", folder=folder, settings=f"[notifications]\n{settings}")


def decide(server, **more):
    return server.ask("POST", "/v1/decisions", SMALL | more, headers=ADMIN)[2]


def metric(server, name):
    text = server.ask("GET", "/metrics", headers={})[2].decode()
    match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(match[1]) if match else 0.0


def webhook_lines(server):
    """Return the lines about the webhook in the log."""
    return [line for line in map(json.loads, server.said.splitlines()) if line["event"].startswith("webhook")]


def test_decision_has_a_start_and_an_end_event(folder):
    with up(folder) as server, follow_events(server) as follower:
        assert follower.headers["content-type"] == "text/event-stream"
        decision, refused = decide(server), decide(server, count=9)
        decide(server, dry_run=True)
        server.ask("DELETE", f"/v1/instances/{decision['picks'][0]['instance_uuid']}", headers=ADMIN)
        decide(server)
        (start_id, name, start), (_, end_name, end), *refusal, (_, release, _), (_, later, _) = follower.events(6)
    assert release == "instance.release"
    assert (name, end_name, later) == (START, END, START)
    assert (start["id"], start["version"], start["event_type"]) == (start_id, "1.0", START)
    payload = start["payload"]
    assert (payload["project_id"], payload["flavor"], payload["count"]) == ("shop", "small", 1)
    assert (payload["outcome"], payload["start_id"], payload["placed"]) == (None, None, [])
    payload = end["payload"]
    (pick,) = decision["picks"]
    assert payload["placed"] == [{key: pick[key] for key in ("instance_uuid", "host", "node", "cell")}]
    assert (payload["outcome"], payload["decision_uuid"], payload["start_id"]) == (
        "granted",
        decision["uuid"],
        start_id,
    )
    assert (refusal[1][2]["payload"]["outcome"], refusal[1][2]["payload"]["reason"]) == ("refused", refused["reason"])
    document = openapi.document()
    schema = {"$ref": "#/components/schemas/Notification", "components": document["components"]}
    for event in (start, end, refusal[1][2]):
        jsonschema.validate(event, schema)


def payloads_of(follower, *types):
    """Read events until there is one of each type, in this order; return their payloads."""
    payloads = []
    while len(payloads) < len(types):
        ((_, name, event),) = follower.events(1)
        if name == types[len(payloads)]:
            payloads.append(event["payload"])
    return payloads


def test_instance_events_resume_after_a_reconnect(folder):
    with up(folder) as server:
        with follow_events(server) as follower:
            body = {"name": "web", "flavor": SMALL["flavor"]}
            creation = server.ask("POST", "/v1/instances", body, headers=ADMIN)[2]
            (built,) = payloads_of(follower, "operation.build.asked")
            assert (built["about"], built["operation_uuid"], built["instance_uuid"]) == (
                "story",
                creation["operation"],
                None,
            )
            ((last_id, _, _),) = follower.events(1)
        (uuid,) = creation["instances"]
        wait_until(lambda: server.ask("GET", f"/v1/instances/{uuid}", headers=ADMIN)[2]["status"] == "ERROR")
        deletion = server.ask("DELETE", f"/v1/instances/{uuid}", headers=ADMIN)[2]
        with follow_events(server, last_id=last_id) as follower:
            lines = payloads_of(follower, "instance.delete.asked", "instance.delete.done")
        assert [(line["instance_uuid"], line["operation_uuid"]) for line in lines] == [
            (uuid, deletion["operation"])
        ] * 2
        known = server.ask("GET", f"/v1/operations/{deletion['operation']}", headers=ADMIN)[2]["story"]
        assert [line["kind"] for line in known] == ["delete.asked", "delete.done"]
        schema = {"$ref": "#/components/schemas/StoryEvent", "components": openapi.document()["components"]}
        jsonschema.validate(lines[0], schema)


def test_all_processes_stream_story_events_but_the_webhook_gets_decisions_only(tmp_path, postgres_url):
    folders = [tmp_path / name for name in ("one", "two")]
    for place in folders:
        place.mkdir()
    options = ("--database", postgres_url)
    with (
        webhook_receiver() as hook,
        up(folders[0], f'webhook = "{hook.url}"', *options) as one,
        up(folders[1], "", *options) as two,
    ):
        with follow_events(two) as there, follow_events(one) as here:
            body = {"run": uuid_of("run"), "driver": "fake", "nodes": []}
            assert one.ask("PUT", "/v1/agents/host-1", body, headers=ADMIN)[0] == 200
            events = [payloads_of(follower, "agent.registered")[0] for follower in (here, there)]
            assert events[0] == events[1]
            assert events[0]["told"] == {"host": "host-1", "state": "ready"}
        decide(one)
        assert {json["payload"]["about"] for _, _, json in hook.wait(2)} == {"decision"}


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def test_events_command_continues_after_a_server_restart(folder, stack):
    with up(folder) as server:
        process = stack.enter_context(
            subprocess.Popen(
                command("events", "--type", "operation.", "--type", "instance.", "--count", 4, "--url", server.address),
                cwd=folder,
                env=environ(),
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        stack.callback(process.kill)
        wait_until(lambda: metric(server, "roost_event_readers") == 1)
        body = {"name": "web", "flavor": SMALL["flavor"]}
        creation = server.ask("POST", "/v1/instances", body, headers=ADMIN)[2]
        assert process.stdout.readline().split()[2:4] == ["operation.build.asked", creation["operation"]]
        port, uuid = server.port, creation["instances"][0]
        wait_until(lambda: server.ask("GET", f"/v1/instances/{uuid}", headers=ADMIN)[2]["status"] == "ERROR")
        # No agent can build the instance, so its build fails.
        assert [process.stdout.readline().split()[2] for _ in range(2)] == [
            "instance.build.sent",
            "instance.spawn.failed",
        ]
    with serve(noun="up", folder=folder, listen=f"127.0.0.1:{port}") as server:
        wait_until(lambda: metric(server, "roost_event_readers") == 1)
        server.ask("DELETE", f"/v1/instances/{uuid}", headers=ADMIN)
        assert process.stdout.readline().split()[2:5] == ["instance.delete.asked", uuid, "user=admin"]
        assert process.wait(PATIENCE_S) == 0
        assert "events were lost" in process.stderr.read()


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (("--url", "http://127.0.0.1:1"), 7, "roost: http://127.0.0.1:1 does not answer: "),
        (("--url", "nowhere"), 2, "roost: --url must be http://HOST:PORT or https://HOST:PORT, got 'nowhere'"),
    ],
)
def test_events_command_reports_an_unusable_server(tmp_path, options, code, sentence):
    result = roost("events", *options, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr.startswith(sentence)) == (code, "", True)


def test_failed_decision_has_an_end_event(folder):
    with up(folder) as server, follow_events(server) as follower:
        (pick,) = decide(server)["picks"]
        assert server.ask("POST", "/v1/decisions", SMALL | {"instance_uuids": [pick["instance_uuid"]]}, headers=ADMIN)[
            0
        ] in {400, 409}
        *_, (_, name, event) = follower.events(4)
    assert (name, event["payload"]["outcome"], event["payload"]["decision_uuid"]) == (END, "failed", None)
    assert event["payload"]["reason"]


@pytest.mark.shows("S198")
def test_older_event_names_are_sent_if_the_setting_is_on(folder):
    with up(folder, "run_instance = true") as server, follow_events(server) as follower:
        decide(server)
        events = follower.events(4)
    older = ["scheduler.run_instance.start", "scheduler.run_instance.end"]
    assert [name for _, name, _ in events] == [START, older[0], END, older[1]]
    assert [event["payload"]["start_id"] for *_, event in events[2:]] == [events[0][0], events[1][0]]


def test_stream_resumes_after_the_last_event_id(folder):
    with up(folder) as server:
        with follow_events(server) as follower:
            decide(server)
            (_, _, _), (last_id, _, _) = follower.events(2)
        decision = decide(server)
        with follow_events(server, last_id=last_id) as follower:
            _, (_, _, event) = follower.events(2)
            assert event["payload"]["decision_uuid"] == decision["uuid"]


@pytest.mark.parametrize("last_id", ["other-1", "nonsense", "-", "x" * 500])
def test_reader_with_lost_events_gets_a_notice_and_the_buffer(folder, last_id):
    with up(folder, "buffer_max_bytes = 1024") as server:
        for _ in range(2):
            decision = decide(server)
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        with connection, connection.makefile("rb") as file:
            head = (
                f"GET /v1/events HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\nlast-event-id: {last_id}\r\n\r\n"
            )
            connection.sendall(head.encode())
            stream = b""
            while decision["uuid"].encode() not in stream:
                stream += file.readline()
        assert b"event: events_lost\ndata: {}\n\n" in stream


def test_idle_stream_sends_heartbeats(folder):
    with up(folder, "heartbeat_s = 0.1") as server, follow_events(server) as follower:
        assert follower.lines() == [": nothing happened"]
        assert follower.lines() == [": nothing happened"]


def test_number_of_readers_is_limited_and_slots_are_reused(folder):
    with up(folder, "subscribers_max = 1") as server:
        with follow_events(server):
            status, headers, problem = server.ask("GET", "/v1/events", headers=ADMIN)
            assert (status, headers["retry-after"]) == (503, "1")
            assert "limit notifications.subscribers_max" in problem["detail"]
            assert metric(server, "roost_event_readers") == 1
        wait_until(lambda: metric(server, "roost_event_readers") == 0)
        with follow_events(server) as follower:
            assert follower.status == 200


def test_slow_reader_is_dropped_without_delaying_others(folder):
    settings = "buffer_max_bytes = 200000\nstall_s = 0.3\nheartbeat_s = 0.2"
    with up(folder, settings) as server, server.connect() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        lazy.sendall(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n\r\n")
        wait_until(lambda: metric(server, "roost_event_readers") == 1)
        uuids = [uuid_of("instance", str(number)) for number in range(2000)]
        big = {"flavor": {"vcpus": 100}, "count": len(uuids), "instance_uuids": uuids}
        wait_until(
            lambda: (
                server.ask("POST", "/v1/decisions", big, headers=ADMIN)[0] == 201
                and metric(server, "roost_event_readers_dropped_total") == 1
            )
        )
        assert metric(server, "roost_event_readers") == 0
        assert not read_all(lazy).endswith(b"0\r\n\r\n")


def test_streams_end_when_the_server_stops(folder):
    with up(folder) as server, follow_events(server) as follower:
        server.tell_to_stop()
        assert follower.lines() == []
        assert server.process.wait(timeout=20) == 0


def test_events_need_a_role_that_may_read(tmp_path, folder):
    observer = roost("token", "create", "joe", "--role", "observer", "--file", "tokens.toml", cwd=tmp_path)
    reader = roost("token", "create", "eve", "--role", "reader", "--file", "tokens.toml", cwd=tmp_path)
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    with serve(noun="up", folder=folder, settings=settings) as server:
        for token, status in ((observer, 200), (reader, 403), (None, 401)):
            headers = {} if token is None else {"x-auth-token": token.stdout.strip()}
            with follow_events(server, headers=headers) as follower:
                assert follower.status == status


def test_webhook_gets_every_event(folder):
    with webhook_receiver() as hook, up(folder, f'webhook = "{hook.url}"\nwebhook_in_flight = 1') as server:
        decision = decide(server)
        (path, _, start), (_, _, end) = hook.wait(2)
        assert path == "/hook?of=roost"
        assert (start["event_type"], end["event_type"]) == (START, END)
        assert end["payload"]["decision_uuid"] == decision["uuid"]
        wait_until(lambda: metric(server, 'roost_webhook_events_total{outcome="delivered"}') == 2)
        assert server.stop() == 0


def test_webhook_is_retried_and_then_given_up(folder):
    settings = "webhook_in_flight = 1\nwebhook_backoff_s = 0.01\nwebhook_attempts = 3"
    with webhook_receiver([500, 429, 200, 503, 503, 503, 404]) as hook:
        with up(folder, f'webhook = "{hook.url}"\n{settings}') as server:
            for _ in range(2):
                decide(server)
            tried = [(status, event["id"].split("-")[1]) for _, status, event in hook.wait(8)]
            assert tried == [(500, "1"), (429, "1"), (200, "1"), *[(503, "2")] * 3, (404, "3"), (204, "4")]
            wait_until(lambda: metric(server, 'roost_webhook_events_total{outcome="delivered"}') == 2)
            assert metric(server, 'roost_webhook_events_total{outcome="failed"}') == 2
            assert metric(server, "roost_webhook_retries_total") == 4
            server.stop()
        assert [(each["event"], each.get("problem")) for each in webhook_lines(server)] == [
            ("webhook_fails", "the answer was 503"),
            ("webhook_is_well", None),
        ]


def test_hanging_webhook_does_not_delay_decisions(folder):
    settings = "webhook_in_flight = 1\nwebhook_queue_max = 2\nwebhook_attempts = 1"
    with webhook_receiver() as hook, up(folder, f'webhook = "{hook.url}"\n{settings}') as server:
        hook.kept.clear()
        decide(server)
        hook.wait(1)
        for _ in range(5):
            assert decide(server)["uuid"]
        dropped = metric(server, 'roost_webhook_events_total{outcome="dropped"}')
        assert dropped == 12 - 1 - 2
        hook.kept.set()
        assert len(hook.wait(3)) == 3
        assert server.stop() == 0
        assert "events wait already (limit notifications.webhook_queue_max)" in server.said


def test_queued_webhook_events_are_sent_before_shutdown(folder):
    with webhook_receiver() as hook:
        with up(folder, f'webhook = "{hook.url}"\nwebhook_in_flight = 2') as server:
            for _ in range(10):
                decide(server)
            assert server.stop() == 0
        assert len({event["id"] for *_, event in hook.taken}) == 20


def test_unreachable_webhook_is_logged_once(folder):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = f'webhook = "http://127.0.0.1:{port}"\nwebhook_attempts = 2\nwebhook_backoff_s = 0.0'
    with up(folder, settings) as server:
        for _ in range(3):
            decide(server)
        wait_until(lambda: metric(server, 'roost_webhook_events_total{outcome="failed"}') == 6)
        assert server.stop() == 0
        (line,) = webhook_lines(server)
        assert "Connection refused" in line["problem"]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://a:b@x/", "http://x:99999/", "nonsense", "http://x/a b"])
def test_invalid_webhook_url_is_refused(tmp_path, url):
    (tmp_path / "roost.toml").write_text(f'[notifications]\nwebhook = "{url}"\n')
    result = roost("up", "--listen", "127.0.0.1:0", "--data", tmp_path, cwd=tmp_path)
    assert (result.returncode, result.stderr.count("\n")) == (3, 1)
    assert "notifications.webhook: must be http://HOST/PATH or https://HOST/PATH without user" in result.stderr


def change_events(follower, count):
    """Return type, object and user of the next events that are changes."""
    found = []
    while len(found) < count:
        ((_, name, event),) = follower.events(1)
        payload = event["payload"]
        if payload["about"] == "change":
            found.append((name, payload["object"], payload["user_id"]))
    return found


def test_changes_by_clients_are_events(folder):
    alice = {"x-auth-token": "alice", "x-roles": "admin", "content-type": "application/json"}
    with up(folder) as server, follow_events(server) as follower:

        def ask(method, path, body=None, headers=alice):
            status, _, answer = server.ask(method, path, body, headers=headers)
            assert status < 300, answer
            return answer

        ask("PATCH", "/v1/services/host-0", {"disabled": True, "disabled_reason": "bad disk"})
        ask("PATCH", "/v1/services/host-0", {"disabled": False})
        aggregate = ask("POST", "/v1/aggregates", {"name": "rack"})["uuid"]
        ask("PUT", f"/v1/aggregates/{aggregate}/hosts/host-0")
        ask("PUT", "/v1/flavors/f", {"vcpus": 1, "memory_mb": 1})
        ask("PUT", "/v1/images/i", {"properties": {}})
        assert change_events(follower, 6) == [
            ("host.disable", "host-0", "alice"),
            ("host.enable", "host-0", "alice"),
            ("aggregate.create", aggregate, "alice"),
            ("host.join_aggregate", "host-0", "alice"),
            ("flavor.create", "f", "alice"),
            ("image.create", "i", "alice"),
        ]
        (folder / "roost.toml").write_text("[filter_scheduler]\nram_weight_multiplier = 3.0\n")
        server.process.send_signal(1)
        ((name, _, user),) = change_events(follower, 1)
    assert (name, user) == ("settings.reload", "")


def test_claims_of_placement_clients_and_releases_are_events(folder):
    consumer = uuid_of("consumer")
    headers = {**ADMIN, "content-type": "application/json", "openstack-api-version": "placement 1.39"}
    with up(folder) as server, follow_events(server) as follower:
        found = server.ask("GET", "/placement/resource_providers", headers=headers)[2]["resource_providers"]
        claim = {
            "allocations": {found[0]["uuid"]: {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        path = f"/placement/allocations/{consumer}"
        over = {**claim, "allocations": {found[0]["uuid"]: {"resources": {"VCPU": 99}}}}
        assert server.ask("PUT", path, over, headers=headers)[0] == 409
        assert server.ask("PUT", path, claim, headers=headers)[0] == 204
        assert server.ask("DELETE", path, headers=headers)[0] == 204
        uuid = decide(server)["picks"][0]["instance_uuid"]
        assert server.ask("DELETE", f"/v1/instances/{uuid}", headers=ADMIN)[0] == 204
        assert change_events(follower, 3) == [
            ("allocation.update", consumer, "admin"),
            ("allocation.delete", consumer, "admin"),
            ("instance.release", uuid, "admin"),
        ]


def test_events_command_prints_changes(folder):
    with up(folder) as server:
        words = command("events", "--url", server.address, "--type", "host.", "--count", "1")
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ()) as follower:
            wait_until(lambda: metric(server, "roost_event_readers") == 1)
            body = {"disabled": True, "disabled_reason": "bad disk"}
            headers = {**ADMIN, "content-type": "application/json"}
            assert server.ask("PATCH", "/v1/services/host-0", body, headers=headers)[0] == 200
            line = follower.communicate(timeout=PATIENCE_S)[0]
    assert line.split("  ", 1)[1] == "host.disable  host-0  user=admin project=admin reason=bad disk\n"
