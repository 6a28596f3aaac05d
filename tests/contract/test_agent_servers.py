"""Agents with several servers on one PostgreSQL continue at the next server when theirs is killed."""

import json

import pytest

from tests.support.servers.clusters import Program, ServerProgram, guests_on

pytestmark = pytest.mark.long

HOSTS = ["rack-1", "rack-2"]


@pytest.fixture
def servers(postgres_url, tmp_path):
    """Two servers on one database."""
    settings = f'[conductor]\nowner_s = 3.0\n[store]\nurl = "{postgres_url}"\n'
    programs = [ServerProgram(folder=tmp_path, settings=settings, name=f"server{at}") for at in (1, 2)]
    for each in programs:
        each.start()
    yield programs
    for each in programs:
        each.kill()


@pytest.fixture
def agents(servers, tmp_path):
    """Two agents in one process, which know both servers from their settings."""
    urls = [each.address for each in servers]
    (tmp_path / "agents.toml").write_text(f"[agent]\nservers = {json.dumps(urls)}\nupdate_s = 1.0\n", encoding="utf-8")
    options = ("--config", tmp_path / "agents.toml", "--state-dir", tmp_path / "state")
    fleet = ("--host", "rack", "--fleet", len(HOSTS), "--option", f"state={tmp_path / 'guests'}")
    program = Program("agent", "--driver", "fake", *options, *fleet, folder=tmp_path, log="agents.log")
    assert program.start() == f"{len(HOSTS)} agents of rack-1 to rack-2 for {', '.join(urls)}\n"
    program.until(lambda: hosts_up(servers[0]) == HOSTS)
    yield program
    program.kill()


def hosts_up(server):
    up = {each["host"] for each in server.listed("agents") if each["up"] and each["state"] == "ready"}
    return sorted(up & {each["host"] for each in server.listed("hosts")})


def outages(program):
    """Return the kind and the server of each line about an outage."""
    lines = [json.loads(line) for line in program.log.read_text().splitlines() if '"server_is_' in line]
    return [(each["event"], each["server"]) for each in lines]


def request_instance(server, host):
    """Request an instance on a host; return its uuid."""
    body = {"flavor": {"name": "f", "vcpus": 1, "memory_mb": 64}, "force_hosts": [host], "name": host}
    status, answer = server.ask("POST", "/v1/instances", body)
    assert status == 202, answer
    return answer["instances"][0]


def is_active(server, uuid):
    return server.ask("GET", f"/v1/instances/{uuid}")[1]["status"] == "ACTIVE"


def test_agents_build_and_report_at_the_next_server_when_theirs_is_killed(servers, agents, tmp_path):
    first, second = servers
    runs = {each["host"]: each["run"] for each in second.listed("agents")}
    first.kill()
    built = [request_instance(second, host) for host in HOSTS]
    agents.until(lambda: all(is_active(second, uuid) for uuid in built))
    assert outages(agents)[0] == ("server_is_away", first.address)
    agents.until(lambda: outages(agents)[-1] == ("server_is_back", second.address))

    first.start()
    second.kill()
    later = request_instance(first, HOSTS[0])
    agents.until(lambda: is_active(first, later))
    agents.until(lambda: hosts_up(first) == HOSTS)
    # The agents kept their registration, and each guest runs once.
    assert {each["host"]: each["run"] for each in first.listed("agents")} == runs
    assert {uuid: len(on) for uuid, on in guests_on(tmp_path / "guests").items()} == dict.fromkeys([*built, later], 1)
    assert agents.stop() == 0
