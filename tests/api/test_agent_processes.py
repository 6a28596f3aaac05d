"""``roost agent`` as processes of their own, at a server as it is."""

import signal
import uuid

import pytest

from roost.machine import find_address
from tests.support.fleets.products import roost
from tests.support.servers.clusters import guests_on, running_agents, up
from tests.support.servers.servers import serve
from tests.support.waiting import until

pytestmark = pytest.mark.long

ADMIN = {"x-auth-token": "admin"}
SETTINGS = """
[agent]
reserved_host_cpus = 2
reserved_host_memory_mb = 1024
cpu_allocation_ratio = 3.0
my_ip = "10.0.0.7"
compute_monitors = ["cpu.virt_driver"]
provider_config_location = "elsewhere"
"""
ADDED = """
meta: {schema_version: '1.0'}
providers:
  - identification: {name: host-1}
    inventories: {additional: [{CUSTOM_FPGA: {total: 4}}]}
"""


# A driver that finds out only while its agent runs that something must move.
LATER = """
from roost.compute.drivers.fake import driver as fake
from roost.errors import ReshapeNeeded


def make(options, terms):
    made, seen = fake.make(options, terms), []
    update = made.update_provider_tree

    def update_provider_tree(tree, node, allocations=None):
        seen.append(node)
        if len(seen) > 1:
            raise ReshapeNeeded(node, "VGPU")
        update(tree, node, allocations)

    made.update_provider_tree = update_provider_tree
    return made
"""


@pytest.fixture
def server(tmp_path):
    with serve(noun="up", folder=tmp_path) as found:
        yield found


def provider(server):
    """Give the uuid and the inventories of the only provider."""
    (root,) = server.ask("GET", "/placement/resource_providers", headers=ADMIN)[2]["resource_providers"]
    found = server.ask("GET", f"/placement/resource_providers/{root['uuid']}/inventories", headers=ADMIN)[2]
    return root["uuid"], found["inventories"]


def test_a_host_appears_with_what_it_has_and_is_the_same_after_its_agent_was_killed(server, tmp_path):
    words = ("--host", "host-1", "--state-dir", tmp_path / "state")
    with running_agents(server, tmp_path, *words) as process:
        assert process.stdout.readline() == f"agent of host-1 for {server.address}\n"
        until(lambda: up(server) == {"host-1"})
        before = provider(server)
        assert before[1]["VCPU"]["total"] == 16
        process.kill()
        process.wait()
    first = server.ask("GET", "/v1/agents/host-1", headers=ADMIN)[2]
    with running_agents(server, tmp_path, *words) as process:
        until(lambda: server.ask("GET", "/v1/agents/host-1", headers=ADMIN)[2]["run"] != first["run"])
        until(lambda: up(server) == {"host-1"})
        assert provider(server) == before
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_a_fleet_is_many_hosts_of_one_process(server, tmp_path):
    with running_agents(server, tmp_path, "--host", "fake", "--fleet", 20) as process:
        until(lambda: up(server) == {f"fake-{number}" for number in range(1, 21)})
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_what_a_host_keeps_and_adds_is_told_by_the_settings_and_options_go_before_them(server, tmp_path):
    named = tmp_path / "added"
    named.mkdir()
    (named / "site.yaml").write_text(ADDED)
    (tmp_path / "roost.toml").write_text(SETTINGS)
    words = ("--host", "host-1", "--state-dir", tmp_path / "state", "--config", tmp_path / "roost.toml")
    with running_agents(server, tmp_path, *words, "--provider-config", named):
        until(lambda: up(server) == {"host-1"})
        offered = provider(server)[1]
        assert (offered["VCPU"]["reserved"], offered["VCPU"]["allocation_ratio"]) == (2, 3.0)
        assert (offered["MEMORY_MB"]["reserved"], offered["CUSTOM_FPGA"]["total"]) == (1024, 4)
        told = server.ask("GET", "/v1/hosts/host-1", headers=ADMIN)[2]
        assert told["facts"]["host_ip"] == "10.0.0.7"


def test_without_a_setting_a_host_reports_its_address_on_the_default_route(server, tmp_path):
    with running_agents(server, tmp_path, "--host", "host-1", "--state-dir", tmp_path / "state"):
        until(lambda: up(server) == {"host-1"})
        shown = server.ask("GET", "/v1/hosts/host-1", headers=ADMIN)[2]
        assert shown["facts"]["host_ip"] == find_address() != ""


def test_what_a_deleted_instance_holds_on_the_host_of_an_agent_is_given_back(server, tmp_path):
    (tmp_path / "roost.toml").write_text("[agent]\nupdate_s = 0.5\n")
    words = ("--host", "host-1", "--state-dir", tmp_path / "state", "--config", tmp_path / "roost.toml")
    with running_agents(server, tmp_path, *words):
        until(lambda: up(server) == {"host-1"})
        body = {"name": "web", "flavor": {"name": "small", "vcpus": 1, "memory_mb": 64}}
        gone = server.ask("POST", "/v1/instances", body, headers=ADMIN)[2]["instances"][0]
        until(lambda: server.ask("GET", f"/v1/instances/{gone}", headers=ADMIN)[2]["status"] == "ACTIVE")
        server.ask("DELETE", f"/v1/instances/{gone}", headers=ADMIN)
        until(lambda: server.ask("GET", f"/v1/instances/{gone}", headers=ADMIN)[2]["status"] == "DELETED")
        root, held = provider(server)[0], "/placement/allocations"
        stranger = str(uuid.uuid4())
        for consumer in (gone, stranger):
            taken = {
                "allocations": {root: {"resources": {"VCPU": 1}}},
                "project_id": "p",
                "user_id": "u",
                "consumer_generation": None,
            }
            asked = ADMIN | {"openstack-api-version": "placement 1.28"}
            assert server.ask("PUT", f"{held}/{consumer}", taken, headers=asked)[0] == 204
        until(lambda: not server.ask("GET", f"{held}/{gone}", headers=ADMIN)[2]["allocations"])
        assert server.ask("GET", f"{held}/{stranger}", headers=ADMIN)[2]["allocations"]
        assert "allocation_released" in (tmp_path / "agent.log").read_text()


@pytest.mark.shows("S120", "S121")
@pytest.mark.parametrize("periodic_reshape", ["die", "log"])
def test_a_reshape_that_is_needed_later_ends_the_process_unless_it_is_told_to_log(server, tmp_path, periodic_reshape):
    (tmp_path / "later.py").write_text(LATER)
    (tmp_path / "later-1.dist-info").mkdir()
    (tmp_path / "later-1.dist-info" / "entry_points.txt").write_text("[roost.drivers]\nlater = later:make\n")
    settings = f'[agent]\nupdate_s = 0.2\nupdate_retry_s = 0.2\nperiodic_reshape = "{periodic_reshape}"\n'
    (tmp_path / "roost.toml").write_text(settings)
    words = ("--driver", "later", "--host", "host-1", "--config", tmp_path / "roost.toml")
    needed = "VGPU of node host-1 must move to other providers or classes, with their allocations"
    log = tmp_path / "agent.log"
    with running_agents(server, tmp_path, *words) as process:
        if periodic_reshape == "log":
            until(lambda: log.read_text().count('"event":"node_not_updated"') > 2)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == (9 if periodic_reshape == "die" else 0)
    assert needed in log.read_text()
    assert log.read_text().endswith(f"roost: {needed}\n") == (periodic_reshape == "die")
    assert provider(server)[1]["VCPU"]["total"] == 16


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--driver", "fake"], 2, "--server and --driver are required to run an agent; see `roost agent --help`"),
        (["--server", "http://127.0.0.1:1", "--driver", "nope"], 3, "driver nope: is none of fake, libvirt"),
        (
            ["--server", "http://127.0.0.1:1", "--driver", "fake", "--option", "x"],
            2,
            "Invalid value for --option: must be KEY=VALUE, got 'x'; see `roost agent --help`",
        ),
        (
            ["--server", "http://127.0.0.1:1", "--driver", "fake", "--option", "x=1"],
            3,
            "driver fake: has no option x; it has script, state, seed",
        ),
        (
            ["--server", "http://127.0.0.1:1", "--driver", "fake", "--config", "wrong.toml"],
            3,
            "wrong.toml: agent.reshape_trys: is not a setting; the nearest known name is reshape_tries",
        ),
        (
            ["--server", "http://127.0.0.1:1", "--driver", "fake", "--config", "monitors.toml"],
            3,
            "compute_monitors: there is no monitor numa, only cpu.virt_driver",
        ),
        (
            ["--server", "http://127.0.0.1:1", "--driver", "fake", "--provider-config", "bad"],
            3,
            "bad/site.yaml: providers: Expected array of length >= 1",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_begins(words, code, sentence, tmp_path):
    (tmp_path / "wrong.toml").write_text("[agent]\nreshape_trys = 3\n")
    (tmp_path / "monitors.toml").write_text('[agent]\ncompute_monitors = ["numa"]\n')
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "site.yaml").write_text("providers: []\n")
    found = roost("agent", *words, "--state-dir", tmp_path / "state", cwd=tmp_path)
    assert (found.returncode, found.stdout, found.stderr) == (code, "", f"roost: {sentence}\n")


def test_an_agent_ends_and_names_the_cause_if_its_token_is_none_or_another_hosts(tmp_path):
    made = roost("token", "create", "agent-1", "--host", "host-1", "--file", "tokens.toml", cwd=tmp_path)
    token = made.stdout.splitlines()[0].strip()
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    with serve(noun="up", folder=tmp_path, settings=settings) as served:
        told = ["agent", "--server", served.address, "--driver", "fake", "--state-dir", tmp_path / "state"]
        wrong = roost(*told, "--host", "host-1", "--token", "wrong", cwd=tmp_path)
        sentence = "authentication is required: x-auth-token is missing or unknown"
        assert (wrong.returncode, wrong.stderr.endswith(f"roost: {served.address}: {sentence}\n")) == (3, True)
        other = roost(*told, "--host", "host-2", "--token", token, cwd=tmp_path)
        sentence = "this token may only touch host host-1, not host-2"
        assert (other.returncode, other.stderr.endswith(f"roost: {served.address}: {sentence}\n")) == (3, True)
        with running_agents(served, tmp_path, "--host", "host-1", "--token", token) as process:
            asked = {"x-auth-token": token}
            until(
                lambda: [each["up"] for each in served.ask("GET", "/v1/agents", headers=asked)[2]["agents"]] == [True]
            )
            assert process.poll() is None


def test_two_agents_cannot_share_a_journal_and_another_machine_cannot_take_the_name(server, tmp_path):
    words = ("--host", "host-1", "--state-dir", tmp_path / "state")
    with running_agents(server, tmp_path, *words) as process:
        until(lambda: up(server) == {"host-1"})
        told = ["agent", "--server", server.address, "--driver", "fake", "--host", "host-1", "--state-dir"]
        shared = roost(*told, tmp_path / "state", cwd=tmp_path)
        assert (shared.returncode, "host-1.db is used by another agent" in shared.stderr) == (7, True)
        other = roost(*told, tmp_path / "elsewhere", cwd=tmp_path)
        assert (other.returncode, "the provider of the node host-1 is" in other.stderr) == (5, True)
        assert process.poll() is None


def instances(server):
    """Give the status of each instance."""
    return [each["status"] for each in server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"]]


def test_a_host_whose_journal_is_lost_gets_a_new_one_and_keeps_its_guests(server, tmp_path):
    journals, guests = tmp_path / "state", tmp_path / "guests"
    words = ("--host", "host-1", "--state-dir", journals, "--option", f"state={guests}")
    adopting = ("agent", "adopt", "host-1", "--url", server.address, "--state-dir", journals)
    with running_agents(server, tmp_path, *words) as process:
        until(lambda: up(server) == {"host-1"})
        before = provider(server)
        asked = {"flavor": {"vcpus": 1, "memory_mb": 1}, "name": "web"}
        assert server.ask("POST", "/v1/instances", asked, headers=ADMIN)[0] == 202
        until(lambda: instances(server) == ["ACTIVE"])
        process.kill()
        process.wait()
    refused = roost(*adopting, cwd=tmp_path)
    assert (refused.returncode, "the agent of host-1 is running, last contact" in refused.stderr) == (5, True)
    assert server.ask("DELETE", "/v1/agents/host-1", headers=ADMIN)[0] == 204
    refused = roost(*adopting, cwd=tmp_path)
    assert (refused.returncode, "has orders or guests: it is not lost" in refused.stderr) == (5, True)
    for file in journals.iterdir():
        file.unlink()
    begun = roost("agent", "--server", server.address, "--driver", "fake", *words, cwd=tmp_path)
    assert (begun.returncode, "if that is lost, after `roost agent adopt host-1`" in begun.stderr) == (5, True)
    adopted = roost(*adopting, cwd=tmp_path)
    assert (adopted.returncode, before[0] in adopted.stdout) == (0, True), adopted.stderr
    with running_agents(server, tmp_path, *words):
        until(lambda: up(server) == {"host-1"})
        assert provider(server) == before
        assert list(guests_on(guests).values()) == [[("host-1", "running")]]
        (one,) = server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"]
        assert one["status"] == "ACTIVE"
        assert server.ask("POST", f"/v1/instances/{one['uuid']}/stop", {}, headers=ADMIN)[0] == 202
        until(lambda: instances(server) == ["SHUTOFF"])
        assert server.ask("DELETE", f"/v1/instances/{one['uuid']}", headers=ADMIN)[0] == 202
        until(lambda: instances(server) == [])
        assert guests_on(guests) == {}


def test_a_host_that_no_agent_was_on_cannot_be_adopted(server, tmp_path):
    told = roost("agent", "adopt", "nowhere", "--url", server.address, "--state-dir", tmp_path / "new", cwd=tmp_path)
    assert (told.returncode, "no such agent: nowhere" in told.stderr) == (4, True), told.stderr
    assert not (tmp_path / "new").exists()
