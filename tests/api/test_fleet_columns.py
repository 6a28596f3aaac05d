"""The columns of the fleet and their changes, over real sockets."""

import socket
from contextlib import ExitStack, contextmanager

import pytest

from roost.api.http import Request, Response, new_request_id
from roost.app import open_roost
from tests.dashboard.clouds import build, get, running_cloud
from tests.support.fleets.products import fleet, roost
from tests.support.servers.clusters import running_agents
from tests.support.servers.event_clients import ADMIN, follow_events
from tests.support.servers.fleet_files import FleetColumns, follow_until, load_columns
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import read_all, serve
from tests.support.wait import wait_until

SMALL = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 16}}
DISABLED, DRAINING, DOWN = 1, 2, 4


@pytest.fixture
def folder(tmp_path):
    """A folder with a database of three hosts with 4 VCPU each."""
    with open_roost(None, tmp_path) as product:
        product.install(fleet(3, vcpus=4))
    return tmp_path


def decide(server, count=1):
    """Make decisions; return the node of each."""
    return [server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[2]["picks"][0]["node"] for _ in range(count)]


def names_of(server, columns):
    status, _, body = server.ask("GET", f"/v1/fleet/names?generation={columns.head['generation']}")
    assert status == 200
    return body.decode().splitlines()


def follow(server, columns):
    """Yield the events of a server, with the changes since the columns."""
    return follow_events(server, query=f"?fleet=true&after={columns.head['position']}")


def load_with_names(server, hosts):
    """Return the columns if a worker knows the names of their generation; workers follow the database on their own."""
    columns = load_columns(server)
    status, _, body = server.ask("GET", f"/v1/fleet/names?generation={columns.head['generation']}")
    assert status in {200, 409}
    return columns if status == 200 and len(body.splitlines()) == columns.hosts == hosts else None


def has_inventories(columns, hosts):
    """Return whether a number of hosts have reported all their inventories."""
    shares = [share for each in columns.shares for share in each]
    return columns.hosts == hosts and len(columns.head["classes"]) == 3 and 65_535 not in shares


def instances_of(columns):
    return sum(columns.columns["instances"])


def test_columns_show_every_host(folder):
    with serve(noun="up", folder=folder) as server:
        chosen = decide(server, 3) + decide(server, 2)
        wait_until(lambda: instances_of(load_columns(server)) == 5)
        columns = load_columns(server)
        names = names_of(server, columns)
        assert sorted(names) == ["host-0", "host-1", "host-2"]
        assert columns.head["classes"] == ["VCPU", "MEMORY_MB"]
        counts = [chosen.count(name) for name in names]
        assert columns.columns["instances"] == counts
        assert columns.shares[0] == [count * 250 for count in counts]
        assert columns.columns["state"] == columns.columns["reported_s"] == [0, 0, 0]
        assert (columns.place_of(0), columns.head["racks"], columns.head["kinds"]) == (("nova", []), [""], [[4, 4096]])


def test_columns_are_compressed_for_clients_that_accept_it(folder):
    with serve(noun="up", folder=folder) as server:
        plain = server.ask("GET", "/v1/fleet/columns", headers=ADMIN)
        short = server.ask("GET", "/v1/fleet/columns", headers=ADMIN | {"accept-encoding": "gzip"})
        assert plain[2] == short[2]
        for _, headers, _ in (plain, short):
            assert headers["content-type"] == "application/octet-stream"
            assert (headers["cache-control"], headers["vary"]) == ("no-store", "accept-encoding")
            assert "etag" not in headers
        assert (plain[1].get("content-encoding"), short[1].get("content-encoding")) == (None, "gzip")


def test_names_belong_to_one_generation(folder):
    with serve(noun="up", folder=folder) as server:
        columns = load_columns(server)
        path = f"/v1/fleet/names?generation={columns.head['generation']}"
        status, headers, body = server.ask("GET", path, headers=ADMIN | {"accept-encoding": "gzip"})
        assert (status, body) == (200, b"host-0\nhost-1\nhost-2\n")
        assert (headers["content-type"], headers["content-encoding"]) == ("text/plain; charset=utf-8", "gzip")
        assert "immutable" in headers["cache-control"]
        status, headers, problem = server.ask("GET", "/v1/fleet/names?generation=0123")
        assert (status, problem["type"]) == (409, "/v1/errors#conflict")
        assert problem["detail"].endswith("now, not '0123': load its columns")
        assert "immutable" not in headers.get("cache-control", "")
        assert "x-roost-generation" not in headers


def test_present_names_have_their_generation_in_a_header(folder):
    with serve(noun="up", folder=folder) as server:
        columns = load_columns(server)
        _, headers, _ = server.ask("GET", "/v1/fleet/columns", headers=ADMIN)
        assert headers["x-roost-generation"] == columns.head["generation"]
        status, headers, body = server.ask("GET", "/v1/fleet/names", headers=ADMIN)
        assert (status, body) == (200, b"host-0\nhost-1\nhost-2\n")
        assert (headers["x-roost-generation"], headers["cache-control"]) == (columns.head["generation"], "no-store")


@pytest.mark.parametrize("query", ["?fleet=true", "?after=3", "?fleet=true&after=-1", "?fleet=maybe&after=1"])
def test_changes_need_a_position(folder, query):
    with serve(noun="up", folder=folder) as server:
        assert server.ask("GET", f"/v1/events{query}")[0] == 400


def test_stream_has_events_and_changes(folder):
    with serve(noun="up", folder=folder) as server:
        columns = load_columns(server)
        decide(server, 2)
        with follow(server, columns) as follower:
            (node,) = decide(server)
            names = set()
            while not {"scheduler.select_destinations.end", "fleet"} <= names:
                ((last_id, name, data),) = follower.events(1)
                names.add(name)
                assert (last_id is None) == (name == "fleet")
                if name == "fleet":
                    columns.apply(data)
            follow_until(follower, columns, lambda each: instances_of(each) == 3)
            assert columns.columns["instances"][names_of(server, columns).index(node)] >= 1
            server.ask("PATCH", "/v1/services/host-1", {"disabled": True}, headers=ADMIN)
            at = names_of(server, columns).index("host-1")
            follow_until(follower, columns, lambda each: each.columns["state"][at] == DISABLED)
        newest = load_columns(server)
        assert newest.changing == columns.changing
        # An old snapshot leads to the same columns.
        with follow(server, columns) as follower:
            ((_, _, data),) = follower.events(1)
            assert not columns.apply(data)


def test_host_is_draining_while_its_drain_is_open(tmp_path):
    with running_cloud(tmp_path, hosts=2) as server:
        instance = build(server, "slow", host="node-1")[0]
        columns = wait_until(lambda: load_with_names(server, 2))
        with follow(server, columns) as follower:
            status, _, accepted = server.ask("POST", "/v1/hosts/NODE-1/drain", {"disable": True}, headers=ADMIN)
            assert status == 202, accepted
            at = names_of(server, columns).index("node-1")
            follow_until(follower, columns, lambda each: each.columns["state"][at] & DRAINING, server=server)
            assert columns.columns["state"][at] == DISABLED + DRAINING
            assert columns.columns["state"][1 - at] == 0
            follow_until(follower, columns, lambda each: each.columns["state"][at] == DISABLED, server=server)
        assert get(server, f"/instances/{instance}")["host"] == "node-2"


def test_reader_with_an_unknown_position_must_reload(folder):
    with serve(noun="up", folder=folder) as server:
        decide(server)
        with follow_events(server, query="?fleet=true&after=0") as follower:
            ((_, name, order),) = follower.events(1)
            assert (name, order["reload"]) == ("fleet", True)
            assert order["position"] <= load_columns(server).head["position"]


def test_new_host_is_an_order_to_reload(folder, tmp_path_factory):
    with serve(noun="up", folder=folder) as server:
        columns = load_columns(server)
        with follow(server, columns) as follower:
            place = tmp_path_factory.mktemp("agent")
            with running_agents(server, place, "--host", "new", "--fleet", 1):
                name = ""
                while name != "fleet":
                    ((_, name, data),) = follower.events(1)
        assert data["reload"]
        newest = load_columns(server)
        assert newest.head["generation"] != columns.head["generation"]
        assert len(names_of(server, newest)) == 4


@contextmanager
def database(kind, request):
    """Yield the options of a server for a database."""
    yield {
        "sqlite": lambda: (),
        "memory": lambda: ("--database", "sqlite://"),
        "postgresql": lambda: ("--database", request.getfixturevalue("postgres_url")),
    }[kind]()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sqlite", "memory", "postgresql"])
def test_lost_agent_is_shown_on_every_database(kind, tmp_path, request):
    with ExitStack() as stack:
        options = stack.enter_context(database(kind, request))
        settings = "[DEFAULT]\nservice_down_time = 4"
        server = stack.enter_context(serve(*options, noun="up", folder=tmp_path, settings=settings))
        for name in ("kept", "lost"):
            (tmp_path / name).mkdir()
        stack.enter_context(running_agents(server, tmp_path / "kept", "--host", "kept", "--fleet", 2))
        lost = stack.enter_context(running_agents(server, tmp_path / "lost", "--host", "lost"))
        wait_until(lambda: load_columns(server).columns["state"] == [0, 0, 0])
        columns = load_columns(server)
        with follow(server, columns) as follower:
            decide(server, 2)
            # Agents may report their inventories at this moment, which is a new layout.
            follow_until(follower, columns, lambda each: instances_of(each) == 2, server=server)
            at = names_of(server, columns).index("lost")
            lost.kill()
            follow_until(follower, columns, lambda each: each.columns["state"][at] == DOWN, server=server)
        newest = load_columns(server)
        assert newest.changing == columns.changing
        assert newest.columns["reported_s"][at] > 0
        assert not server.problems


def test_changes_of_another_server_continue_a_snapshot(tmp_path, postgres_url):
    """Hosts have the same order in all processes, and positions the same meaning."""
    folders = [tmp_path / name for name in ("one", "two")]
    for each in folders:
        each.mkdir()
    options = ("--database", postgres_url)
    with ExitStack() as stack:
        one = stack.enter_context(serve(*options, noun="up", folder=folders[0]))
        stack.enter_context(running_agents(one, folders[0], "--host", "h", "--fleet", 3))
        wait_until(lambda: load_columns(one).columns["state"] == [0, 0, 0])
        two = stack.enter_context(serve(*options, noun="up", folder=folders[1]))
        decide(one, 2)
        wait_until(lambda: instances_of(load_columns(one)) == 2)
        columns = load_columns(one)
        assert names_of(two, columns) == names_of(one, columns)
        with follow(two, columns) as follower:
            decide(one, 2)
            decide(two, 2)
            decide(one, 2)
            follow_until(follower, columns, lambda each: instances_of(each) == 8, server=one)
        for server in (one, two):
            wait_until(lambda server=server: load_columns(server).changing == columns.changing)


@pytest.mark.long
def test_every_worker_serves_columns_names_and_changes(tmp_path, postgres_url):
    with ExitStack() as stack:
        options = ("--workers", "2", "--database", postgres_url)
        server = stack.enter_context(serve(*options, noun="up", folder=tmp_path))
        stack.enter_context(running_agents(server, tmp_path, "--host", "h", "--fleet", 3))
        # Reports of inventories change the classes, and so the generation.
        wait_until(lambda: has_inventories(load_columns(server), 3))
        for round_number in range(6):
            columns = wait_until(lambda: load_with_names(server, 3))
            with follow(server, columns) as follower:
                decide(server, 2)
                count = 2 * (round_number + 1)
                follow_until(follower, columns, lambda each, count=count: instances_of(each) == count, server=server)
            wait_until(lambda count=count: instances_of(load_columns(server)) == count)


def test_reader_of_changes_counts_as_a_reader_of_events(folder):
    settings = "[notifications]\nsubscribers_max = 1"
    with serve(noun="up", folder=folder, settings=settings) as server:
        columns = load_columns(server)
        with follow(server, columns):
            path = f"/v1/events?fleet=true&after={columns.head['position']}"
            status, _, problem = server.ask("GET", path)
            assert (status, "subscribers_max" in problem["detail"]) == (503, True)

        def is_free():
            with follow(server, columns) as follower:
                return follower.status == 200

        assert wait_until(is_free)


def test_slow_reader_of_changes_is_dropped(folder):
    settings = "[notifications]\nbuffer_max_bytes = 200000\nstall_s = 0.3\nheartbeat_s = 0.2"
    with serve(noun="up", folder=folder, settings=settings) as server, server.connect() as lazy:
        columns = load_columns(server)
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        path = f"/v1/events?fleet=true&after={columns.head['position']}"
        lazy.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nx-auth-token: admin\r\n\r\n".encode())
        big = {"flavor": {"vcpus": 100}, "count": 2000}

        def is_dropped():
            server.ask("POST", "/v1/decisions", big, headers=ADMIN)
            return b"roost_event_readers_dropped_total 1.0" in server.ask("GET", "/metrics", headers={})[2]

        wait_until(is_dropped)
        assert not read_all(lazy).endswith(b"0\r\n\r\n")
        assert instances_of(load_columns(server)) == 0


def test_stream_of_changes_ends_when_the_server_stops(folder):
    with serve(noun="up", folder=folder) as server, follow(server, load_columns(server)) as follower:
        server.tell_to_stop()
        while follower.lines():
            pass
        assert server.process.wait(timeout=20) == 0


def test_columns_need_a_role_that_may_read(tmp_path, folder):
    (tmp_path / "policy.yaml").write_text('"roost:fleet:columns": "role:admin"\n')
    tokens = {
        role: roost("token", "create", role, "--role", role, "--file", "tokens.toml", cwd=tmp_path).stdout.strip()
        for role in ("admin", "observer", "reader")
    }
    base = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"\n'
    paths = ("/v1/fleet/columns", "/v1/fleet/names?generation=x", "/v1/events?fleet=true&after=0")
    with serve(noun="up", folder=folder, settings=base) as server:
        for role, statuses in (("observer", [200, 409]), ("reader", [403, 403, 403])):
            headers = {"x-auth-token": tokens[role]}
            asked = paths if role == "reader" else paths[:2]
            assert [server.ask("GET", path, headers=headers)[0] for path in asked] == statuses
    with serve(noun="up", folder=folder, settings=f'{base}policy_file = "policy.yaml"') as server:
        headers = {"x-auth-token": tokens["observer"]}
        assert [server.ask("GET", path, headers=headers)[0] for path in paths] == [403, 409, 403]


@pytest.mark.parametrize("path", ["/fleet/columns", "/fleet/names", "/events"])
def test_handlers_do_not_wait_for_the_deciding_thread(path):
    with roost_api() as api:
        query = "generation=x" if path == "/fleet/names" else ""
        request = Request(method="GET", path=path, query_string=query, headers=ADMIN, request_id=new_request_id())
        assert isinstance(api.application.enter(request), Response)


def test_process_without_snapshots_refuses_requests_for_them():
    with roost_api() as api:
        for path in ("/fleet/columns", "/fleet/names?generation=x", "/events?fleet=true&after=0"):
            response = api.get(path)
            assert (response.status, "snapshots" in response.json["detail"]) == (409, True)


def test_decoder_refuses_another_format():
    with pytest.raises(AssertionError):
        FleetColumns(b"RFS2" + bytes(12))
