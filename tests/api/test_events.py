"""Events of decisions over real sockets: followed, and sent to a webhook."""

import json
import re
import socket
import subprocess
from contextlib import ExitStack

import jsonschema
import pytest

from roost.api.v1 import openapi
from roost.app import open_roost
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import command, environ, fleet, roost
from tests.support.servers.event_clients import ADMIN, following, hooked
from tests.support.servers.servers import read_all, serve
from tests.support.waiting import until

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}, "project_id": "shop"}
START, END = "scheduler.select_destinations.start", "scheduler.select_destinations.end"
PATIENCE_S = 60


@pytest.fixture
def folder(tmp_path):
    """The folder of a database with two hosts of 4 VCPU."""
    with open_roost(None, tmp_path) as product:
        product.install(fleet(2, vcpus=4))
    return tmp_path


def up(folder, settings="", *words):
    return serve(*words, noun="up", folder=folder, settings=f"[notifications]\n{settings}")


def decide(server, **more):
    return server.ask("POST", "/v1/decisions", SMALL | more, headers=ADMIN)[2]


def counted(server, name):
    text = server.ask("GET", "/metrics", headers={})[2].decode()
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_decision_is_told_at_its_start_and_its_end(folder):
    with up(folder) as server, following(server) as follower:
        assert follower.headers["content-type"] == "text/event-stream"
        made, refused = decide(server), decide(server, count=9)
        decide(server, dry_run=True)
        server.ask("DELETE", f"/v1/instances/{made['picks'][0]['instance_uuid']}", headers=ADMIN)
        decide(server)
        (start_id, name, start), (_, end_name, end), *refusal, (_, later, _) = follower.events(5)
    assert (name, end_name, later) == (START, END, START)
    assert (start["id"], start["version"], start["event_type"]) == (start_id, "1.0", START)
    payload = start["payload"]
    assert (payload["project_id"], payload["flavor"], payload["count"]) == ("shop", "small", 1)
    assert (payload["outcome"], payload["start_id"], payload["placed"]) == (None, None, [])
    payload = end["payload"]
    (pick,) = made["picks"]
    assert payload["placed"] == [{key: pick[key] for key in ("instance_uuid", "host", "node", "cell")}]
    assert (payload["outcome"], payload["decision_uuid"], payload["start_id"]) == ("granted", made["uuid"], start_id)
    assert (refusal[1][2]["payload"]["outcome"], refusal[1][2]["payload"]["reason"]) == ("refused", refused["reason"])
    document = openapi.document()
    schema = {"$ref": "#/components/schemas/Notification", "components": document["components"]}
    for event in (start, end, refusal[1][2]):
        jsonschema.validate(event, schema)


def story(follower, *types):
    """Return the payloads of the next events of these types, in this order."""
    found = []
    while len(found) < len(types):
        ((_, name, event),) = follower.events(1)
        if name == types[len(found)]:
            found.append(event["payload"])
    return found


def test_what_happens_to_instances_is_told_and_who_comes_back_goes_on(folder):
    with up(folder) as server:
        with following(server) as follower:
            body = {"name": "web", "flavor": SMALL["flavor"]}
            asked = server.ask("POST", "/v1/instances", body, headers=ADMIN)[2]
            (built,) = story(follower, "operation.build.asked")
            assert (built["about"], built["operation_uuid"], built["instance_uuid"]) == (
                "story",
                asked["operation"],
                None,
            )
            ((last_id, _, _),) = follower.events(1)
        (uuid,) = asked["instances"]
        until(lambda: server.ask("GET", f"/v1/instances/{uuid}", headers=ADMIN)[2]["status"] == "ERROR")
        ended = server.ask("DELETE", f"/v1/instances/{uuid}", headers=ADMIN)[2]
        with following(server, last_id=last_id) as follower:
            lines = story(follower, "instance.delete.asked", "instance.delete.done")
        assert [(line["instance_uuid"], line["operation_uuid"]) for line in lines] == [(uuid, ended["operation"])] * 2
        known = server.ask("GET", f"/v1/operations/{ended['operation']}", headers=ADMIN)[2]["story"]
        assert [line["kind"] for line in known] == ["delete.asked", "delete.done"]
        schema = {"$ref": "#/components/schemas/StoryEvent", "components": openapi.document()["components"]}
        jsonschema.validate(lines[0], schema)


def test_a_story_is_told_by_every_process_and_the_webhook_hears_of_decisions_alone(tmp_path, postgres_url):
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
    words = ("--database", postgres_url)
    with hooked() as hook, up(places[0], f'webhook = "{hook.url}"', *words) as one, up(places[1], "", *words) as two:
        with following(two) as there, following(one) as here:
            body = {"run": uuid_of("run"), "driver": "fake", "nodes": []}
            assert one.ask("PUT", "/v1/agents/host-1", body, headers=ADMIN)[0] == 200
            told = [story(follower, "agent.registered")[0] for follower in (here, there)]
            assert told[0] == told[1]
            assert told[0]["told"] == {"host": "host-1", "state": "ready"}
        decide(one)
        assert {json["payload"]["about"] for _, _, json in hook.wait(2)} == {"decision"}


@pytest.fixture
def stack():
    with ExitStack() as made:
        yield made


def test_the_command_prints_what_happens_and_goes_on_after_a_restart(folder, stack):
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
        until(lambda: counted(server, "roost_event_readers") == 1)
        body = {"name": "web", "flavor": SMALL["flavor"]}
        asked = server.ask("POST", "/v1/instances", body, headers=ADMIN)[2]
        assert process.stdout.readline().split()[2:4] == ["operation.build.asked", asked["operation"]]
        port, uuid = server.port, asked["instances"][0]
        until(lambda: server.ask("GET", f"/v1/instances/{uuid}", headers=ADMIN)[2]["status"] == "ERROR")
        # Nobody is there to build it, so it is sent to a host in vain.
        assert [process.stdout.readline().split()[2] for _ in range(2)] == [
            "instance.build.sent",
            "instance.spawn.failed",
        ]
    with serve(noun="up", folder=folder, listen=f"127.0.0.1:{port}") as server:
        until(lambda: counted(server, "roost_event_readers") == 1)
        server.ask("DELETE", f"/v1/instances/{uuid}", headers=ADMIN)
        assert process.stdout.readline().split()[2:] == ["instance.delete.asked", uuid]
        assert process.wait(PATIENCE_S) == 0
        assert "events were lost" in process.stderr.read()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--url", "http://127.0.0.1:1"), 7, "roost: http://127.0.0.1:1 does not answer: "),
        (("--url", "nowhere"), 2, "roost: --url must be http://HOST:PORT or https://HOST:PORT, got 'nowhere'"),
    ],
)
def test_where_nothing_can_be_followed_the_command_says_so(tmp_path, words, code, sentence):
    found = roost("events", *words, cwd=tmp_path)
    assert (found.returncode, found.stdout, found.stderr.startswith(sentence)) == (code, "", True)


def test_what_fails_ends_too(folder):
    with up(folder) as server, following(server) as follower:
        (pick,) = decide(server)["picks"]
        assert server.ask("POST", "/v1/decisions", SMALL | {"instance_uuids": [pick["instance_uuid"]]}, headers=ADMIN)[
            0
        ] in {400, 409}
        *_, (_, name, event) = follower.events(4)
    assert (name, event["payload"]["outcome"], event["payload"]["decision_uuid"]) == (END, "failed", None)
    assert event["payload"]["reason"]


@pytest.mark.shows("S198")
def test_the_older_names_are_told_where_that_is_said(folder):
    with up(folder, "run_instance = true") as server, following(server) as follower:
        decide(server)
        told = follower.events(4)
    older = ["scheduler.run_instance.start", "scheduler.run_instance.end"]
    assert [name for _, name, _ in told] == [START, older[0], END, older[1]]
    assert [event["payload"]["start_id"] for *_, event in told[2:]] == [told[0][0], told[1][0]]


def test_who_comes_back_goes_on_where_it_was(folder):
    with up(folder) as server:
        with following(server) as follower:
            decide(server)
            (_, _, _), (last_id, _, _) = follower.events(2)
        made = decide(server)
        with following(server, last_id=last_id) as follower:
            _, (_, _, event) = follower.events(2)
            assert event["payload"]["decision_uuid"] == made["uuid"]


@pytest.mark.parametrize("last_id", ["other-1", "nonsense", "-", "x" * 500])
def test_who_missed_events_is_told_and_gets_what_is_kept(folder, last_id):
    with up(folder, "buffer_max_bytes = 1024") as server:
        for _ in range(2):
            made = decide(server)
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
        with connection, connection.makefile("rb") as file:
            head = (
                f"GET /v1/events HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\nlast-event-id: {last_id}\r\n\r\n"
            )
            connection.sendall(head.encode())
            found = b""
            while made["uuid"].encode() not in found:
                found += file.readline()
        assert b"event: events_lost\ndata: {}\n\n" in found


def test_a_stream_that_has_nothing_to_tell_says_so(folder):
    with up(folder, "heartbeat_s = 0.1") as server, following(server) as follower:
        assert follower.lines() == [": nothing happened"]
        assert follower.lines() == [": nothing happened"]


def test_readers_are_bounded_and_places_come_back(folder):
    with up(folder, "subscribers_max = 1") as server:
        with following(server):
            status, headers, told = server.ask("GET", "/v1/events", headers=ADMIN)
            assert (status, headers["retry-after"]) == (503, "1")
            assert "limit notifications.subscribers_max" in told["detail"]
            assert counted(server, "roost_event_readers") == 1
        until(lambda: counted(server, "roost_event_readers") == 0)
        with following(server) as follower:
            assert follower.status == 200


def test_who_does_not_read_is_dropped_and_holds_nobody_up(folder):
    settings = "buffer_max_bytes = 200000\nstall_s = 0.3\nheartbeat_s = 0.2"
    with up(folder, settings) as server, server.connect() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        lazy.sendall(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n\r\n")
        until(lambda: counted(server, "roost_event_readers") == 1)
        uuids = [uuid_of("instance", str(number)) for number in range(2000)]
        big = {"flavor": {"vcpus": 100}, "count": len(uuids), "instance_uuids": uuids}
        until(
            lambda: (
                server.ask("POST", "/v1/decisions", big, headers=ADMIN)[0] == 201
                and counted(server, "roost_event_readers_dropped_total") == 1
            )
        )
        assert counted(server, "roost_event_readers") == 0
        assert not read_all(lazy).endswith(b"0\r\n\r\n")


def test_streams_end_when_the_server_stops(folder):
    with up(folder) as server, following(server) as follower:
        server.tell_to_stop()
        assert follower.lines() == []
        assert server.process.wait(timeout=20) == 0


def test_events_are_for_who_may_read(tmp_path, folder):
    made = roost("token", "create", "joe", "--role", "observer", "--file", "tokens.toml", cwd=tmp_path)
    nobody = roost("token", "create", "eve", "--role", "reader", "--file", "tokens.toml", cwd=tmp_path)
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    with serve(noun="up", folder=folder, settings=settings) as server:
        for token, status in ((made, 200), (nobody, 403), (None, 401)):
            headers = {} if token is None else {"x-auth-token": token.stdout.strip()}
            with following(server, headers=headers) as follower:
                assert follower.status == status


def test_a_webhook_gets_every_event(folder):
    with hooked() as hook, up(folder, f'webhook = "{hook.url}"\nwebhook_in_flight = 1') as server:
        made = decide(server)
        (path, _, start), (_, _, end) = hook.wait(2)
        assert path == "/hook?of=roost"
        assert (start["event_type"], end["event_type"]) == (START, END)
        assert end["payload"]["decision_uuid"] == made["uuid"]
        until(lambda: counted(server, 'roost_webhook_events_total{outcome="delivered"}') == 2)
        assert server.stop() == 0


def test_a_webhook_is_tried_again_and_given_up(folder):
    settings = "webhook_in_flight = 1\nwebhook_backoff_s = 0.01\nwebhook_attempts = 3"
    with hooked([500, 429, 200, 503, 503, 503, 404]) as hook:
        with up(folder, f'webhook = "{hook.url}"\n{settings}') as server:
            for _ in range(2):
                decide(server)
            tried = [(status, event["id"].split("-")[1]) for _, status, event in hook.wait(8)]
            assert tried == [(500, "1"), (429, "1"), (200, "1"), *[(503, "2")] * 3, (404, "3"), (204, "4")]
            until(lambda: counted(server, 'roost_webhook_events_total{outcome="delivered"}') == 2)
            assert counted(server, 'roost_webhook_events_total{outcome="failed"}') == 2
            assert counted(server, "roost_webhook_retries_total") == 4
            server.stop()
        events = [json.loads(line) for line in server.said.splitlines()]
        assert [(each["event"], each.get("problem")) for each in events] == [
            ("webhook_fails", "the answer was 503"),
            ("webhook_is_well", None),
        ]


def test_a_webhook_that_hangs_holds_no_decision_up(folder):
    settings = "webhook_in_flight = 1\nwebhook_queue_max = 2\nwebhook_attempts = 1"
    with hooked() as hook, up(folder, f'webhook = "{hook.url}"\n{settings}') as server:
        hook.kept.clear()
        decide(server)
        hook.wait(1)
        for _ in range(5):
            assert decide(server)["uuid"]
        dropped = counted(server, 'roost_webhook_events_total{outcome="dropped"}')
        assert dropped == 12 - 1 - 2
        hook.kept.set()
        assert len(hook.wait(3)) == 3
        assert server.stop() == 0
        assert "events wait already (limit notifications.webhook_queue_max)" in server.said


def test_what_waits_is_sent_before_the_end(folder):
    with hooked() as hook:
        with up(folder, f'webhook = "{hook.url}"\nwebhook_in_flight = 2') as server:
            for _ in range(10):
                decide(server)
            assert server.stop() == 0
        assert len({event["id"] for *_, event in hook.taken}) == 20


def test_a_webhook_that_is_not_there_is_told_once(folder):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    settings = f'webhook = "http://127.0.0.1:{port}"\nwebhook_attempts = 2\nwebhook_backoff_s = 0.0'
    with up(folder, settings) as server:
        for _ in range(3):
            decide(server)
        until(lambda: counted(server, 'roost_webhook_events_total{outcome="failed"}') == 6)
        assert server.stop() == 0
        (line,) = server.said.splitlines()
        assert "Connection refused" in json.loads(line)["problem"]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://a:b@x/", "http://x:99999/", "nonsense", "http://x/a b"])
def test_a_webhook_that_cannot_be_meant_is_refused(tmp_path, url):
    (tmp_path / "roost.toml").write_text(f'[notifications]\nwebhook = "{url}"\n')
    ran = roost("up", "--listen", "127.0.0.1:0", "--data", tmp_path, cwd=tmp_path)
    assert (ran.returncode, ran.stderr.count("\n")) == (3, 1)
    assert "notifications.webhook: must be http://HOST/PATH or https://HOST/PATH without user" in ran.stderr
