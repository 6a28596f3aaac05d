"""``roost agent`` in processes of its own, with a real server."""

import signal
import uuid

import pytest

from roost.machine import find_address
from tests.support.fleets.products import roost
from tests.support.servers.clusters import guests_on, hosts_up, running_agents
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

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
PROVIDER_CONFIG = """
meta: {schema_version: '1.0'}
providers:
  - identification: {name: host-1}
    inventories: {additional: [{CUSTOM_FPGA: {total: 4}}]}
"""


# A driver that needs a reshape only after its agent has started.
LATE_RESHAPE = """
from roost.compute.drivers.fake import driver as fake
from roost.errors import ReshapeNeeded


def make(options, terms):
    driver, seen = fake.make(options, terms), []
    update = driver.update_provider_tree

    def update_provider_tree(tree, node, allocations=None):
        seen.append(node)
        if len(seen) > 1:
            raise ReshapeNeeded(node, "VGPU")
        update(tree, node, allocations)

    driver.update_provider_tree = update_provider_tree
    return driver
"""


@pytest.fixture
def server(tmp_path):
    with serve(noun="up", folder=tmp_path) as running_server:
        yield running_server


def provider(server):
    """Return the uuid and the inventories of the only provider."""
    (root,) = server.ask("GET", "/placement/resource_providers", headers=ADMIN)[2]["resource_providers"]
    response = server.ask("GET", f"/placement/resource_providers/{root['uuid']}/inventories", headers=ADMIN)[2]
    return root["uuid"], response["inventories"]


def test_provider_is_unchanged_after_the_agent_restarts(server, tmp_path):
    options = ("--host", "host-1", "--state-dir", tmp_path / "state")
    with running_agents(server, tmp_path, *options) as process:
        assert process.stdout.readline() == f"agent of host-1 for {server.address}\n"
        wait_until(lambda: hosts_up(server) == {"host-1"})
        before = provider(server)
        assert before[1]["VCPU"]["total"] == 16
        process.kill()
        process.wait()
    first = server.ask("GET", "/v1/agents/host-1", headers=ADMIN)[2]
    with running_agents(server, tmp_path, *options) as process:
        wait_until(lambda: server.ask("GET", "/v1/agents/host-1", headers=ADMIN)[2]["run"] != first["run"])
        wait_until(lambda: hosts_up(server) == {"host-1"})
        assert provider(server) == before
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_fleet_option_runs_many_hosts_in_one_process(server, tmp_path):
    with running_agents(server, tmp_path, "--host", "fake", "--fleet", 20) as process:
        wait_until(lambda: hosts_up(server) == {f"fake-{number}" for number in range(1, 21)})
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_agent_settings_and_provider_config_shape_the_inventory(server, tmp_path):
    config_folder = tmp_path / "added"
    config_folder.mkdir()
    (config_folder / "site.yaml").write_text(PROVIDER_CONFIG)
    (tmp_path / "roost.toml").write_text(SETTINGS)
    options = ("--host", "host-1", "--state-dir", tmp_path / "state", "--config", tmp_path / "roost.toml")
    with running_agents(server, tmp_path, *options, "--provider-config", config_folder):
        wait_until(lambda: hosts_up(server) == {"host-1"})
        inventories = provider(server)[1]
        assert (inventories["VCPU"]["reserved"], inventories["VCPU"]["allocation_ratio"]) == (2, 3.0)
        assert (inventories["MEMORY_MB"]["reserved"], inventories["CUSTOM_FPGA"]["total"]) == (1024, 4)
        host = server.ask("GET", "/v1/hosts/host-1", headers=ADMIN)[2]
        assert host["facts"]["host_ip"] == "10.0.0.7"


def test_host_reports_its_default_route_address_by_default(server, tmp_path):
    with running_agents(server, tmp_path, "--host", "host-1", "--state-dir", tmp_path / "state"):
        wait_until(lambda: hosts_up(server) == {"host-1"})
        host = server.ask("GET", "/v1/hosts/host-1", headers=ADMIN)[2]
        assert host["facts"]["host_ip"] == find_address() != ""


def test_allocations_of_a_deleted_instance_are_released(server, tmp_path):
    (tmp_path / "roost.toml").write_text("[agent]\nupdate_s = 0.5\n")
    options = ("--host", "host-1", "--state-dir", tmp_path / "state", "--config", tmp_path / "roost.toml")
    with running_agents(server, tmp_path, *options):
        wait_until(lambda: hosts_up(server) == {"host-1"})
        body = {"name": "web", "flavor": {"name": "small", "vcpus": 1, "memory_mb": 64}}
        deleted = server.ask("POST", "/v1/instances", body, headers=ADMIN)[2]["instances"][0]
        wait_until(lambda: server.ask("GET", f"/v1/instances/{deleted}", headers=ADMIN)[2]["status"] == "ACTIVE")
        server.ask("DELETE", f"/v1/instances/{deleted}", headers=ADMIN)
        wait_until(lambda: server.ask("GET", f"/v1/instances/{deleted}", headers=ADMIN)[2]["status"] == "DELETED")
        root, allocations = provider(server)[0], "/placement/allocations"
        stranger = str(uuid.uuid4())
        for consumer in (deleted, stranger):
            claim = {
                "allocations": {root: {"resources": {"VCPU": 1}}},
                "project_id": "p",
                "user_id": "u",
                "consumer_generation": None,
            }
            headers = ADMIN | {"openstack-api-version": "placement 1.28"}
            assert server.ask("PUT", f"{allocations}/{consumer}", claim, headers=headers)[0] == 204
        wait_until(lambda: not server.ask("GET", f"{allocations}/{deleted}", headers=ADMIN)[2]["allocations"])
        assert server.ask("GET", f"{allocations}/{stranger}", headers=ADMIN)[2]["allocations"]
        assert "allocation_released" in (tmp_path / "agent.log").read_text()


@pytest.mark.shows("S120", "S121")
@pytest.mark.parametrize("periodic_reshape", ["die", "log"])
def test_periodic_reshape_setting_ends_the_agent_or_only_logs(server, tmp_path, periodic_reshape):
    (tmp_path / "later.py").write_text(LATE_RESHAPE)
    (tmp_path / "later-1.dist-info").mkdir()
    (tmp_path / "later-1.dist-info" / "entry_points.txt").write_text("[roost.drivers]\nlater = later:make\n")
    settings = (
        f'[agent]\nupdate_s = 0.2\nupdate_retry_s = 0.2\nperiodic_reshape = "{periodic_reshape}"\n[log]\nrepeat_s = 0\n'
    )
    (tmp_path / "roost.toml").write_text(settings)
    options = ("--driver", "later", "--host", "host-1", "--config", tmp_path / "roost.toml")
    message = "VGPU of node host-1 must move to other providers or classes, with their allocations"
    log = tmp_path / "agent.log"
    with running_agents(server, tmp_path, *options) as process:
        if periodic_reshape == "log":
            wait_until(lambda: log.read_text().count('"event":"node_not_updated"') > 2)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
        assert process.wait(30) == (9 if periodic_reshape == "die" else 0)
    assert message in log.read_text()
    assert log.read_text().endswith(f"roost: {message}\n") == (periodic_reshape == "die")
    assert provider(server)[1]["VCPU"]["total"] == 16


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--server", "http://127.0.0.1:1"], 2, "--driver is required to run an agent; see `roost agent --help`"),
        (
            ["--driver", "fake"],
            2,
            "name the server of the agent with --server, or in the setting agent.servers; see `roost agent --help`",
        ),
        (
            ["--server", "http://127.0.0.1:1", "--driver", "nope"],
            3,
            "driver nope: does not exist; the drivers are fake, libvirt",
        ),
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
def test_invalid_options_are_refused_before_the_agent_starts(options, code, sentence, tmp_path):
    (tmp_path / "wrong.toml").write_text("[agent]\nreshape_trys = 3\n")
    (tmp_path / "monitors.toml").write_text('[agent]\ncompute_monitors = ["numa"]\n')
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "site.yaml").write_text("providers: []\n")
    result = roost("agent", *options, "--state-dir", tmp_path / "state", cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (code, "", f"roost: {sentence}\n")


def test_agent_exits_if_its_token_is_unknown_or_for_another_host(tmp_path):
    creation = roost("token", "create", "agent-1", "--host", "host-1", "--file", "tokens.toml", cwd=tmp_path)
    token = creation.stdout.splitlines()[0].strip()
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    with serve(noun="up", folder=tmp_path, settings=settings) as served:
        command = ["agent", "--server", served.address, "--driver", "fake", "--state-dir", tmp_path / "state"]
        wrong = roost(*command, "--host", "host-1", "--token", "wrong", cwd=tmp_path)
        sentence = "authentication is required: x-auth-token is missing or unknown"
        assert (wrong.returncode, wrong.stderr.endswith(f"roost: {served.address}: {sentence}\n")) == (10, True)
        other = roost(*command, "--host", "host-2", "--token", token, cwd=tmp_path)
        sentence = "this token may only touch host host-1, not host-2"
        assert (other.returncode, other.stderr.endswith(f"roost: {served.address}: {sentence}\n")) == (10, True)
        with running_agents(served, tmp_path, "--host", "host-1", "--token", token) as process:
            headers = {"x-auth-token": token}
            wait_until(
                lambda: [each["up"] for each in served.ask("GET", "/v1/agents", headers=headers)[2]["agents"]] == [True]
            )
            assert process.poll() is None


def test_running_agent_goes_on_with_the_new_token_of_its_file(tmp_path):
    create = ("token", "create", "--host", "host-1", "--file", "tokens.toml", "--token-file")
    settings = 'auth_strategy = "tokens"\ntokens_file = "tokens.toml"'
    assert roost(*create, "old", cwd=tmp_path).returncode == 0
    with serve(noun="up", folder=tmp_path, settings=settings) as served:
        options = ("--host", "host-1", "--state-dir", tmp_path / "state", "--token-file", "old")
        with running_agents(served, tmp_path, *options) as process:
            log = tmp_path / "agent.log"
            agent = ("GET", "/v1/agents/host-1")
            headers = {"x-auth-token": (tmp_path / "old").read_text().strip()}
            wait_until(lambda: served.ask(*agent, headers=headers)[2].get("up"))
            assert roost("token", "revoke", "agent-of-host-1", "--file", "tokens.toml", cwd=tmp_path).returncode == 0
            wait_until(lambda: '"event":"credentials_refused"' in log.read_text())
            assert roost(*create, "new", cwd=tmp_path).returncode == 0
            headers = {"x-auth-token": (tmp_path / "new").read_text().strip()}
            (tmp_path / "new").rename(tmp_path / "old")
            wait_until(lambda: '"event":"credentials_read"' in log.read_text())
            heard_at_s = served.ask(*agent, headers=headers)[2]["heard_at_s"]
            wait_until(lambda: served.ask(*agent, headers=headers)[2]["heard_at_s"] > heard_at_s)
            assert process.poll() is None


def test_journal_and_host_name_cannot_be_taken_by_a_second_agent(server, tmp_path):
    options = ("--host", "host-1", "--state-dir", tmp_path / "state")
    with running_agents(server, tmp_path, *options) as process:
        wait_until(lambda: hosts_up(server) == {"host-1"})
        command = ["agent", "--server", server.address, "--driver", "fake", "--host", "host-1", "--state-dir"]
        shared = roost(*command, tmp_path / "state", cwd=tmp_path)
        assert (shared.returncode, "host-1.db is used by another agent" in shared.stderr) == (7, True)
        other = roost(*command, tmp_path / "elsewhere", cwd=tmp_path)
        assert (other.returncode, "the provider of the node host-1 is" in other.stderr) == (5, True)
        assert process.poll() is None


def instances(server):
    """Return the status of each instance."""
    return [each["status"] for each in server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"]]


def test_host_with_a_lost_journal_is_adopted_and_keeps_its_guests(server, tmp_path):
    journals, guests = tmp_path / "state", tmp_path / "guests"
    options = ("--host", "host-1", "--state-dir", journals, "--option", f"state={guests}")
    adopt = ("agent", "adopt", "host-1", "--url", server.address, "--state-dir", journals)
    with running_agents(server, tmp_path, *options) as process:
        wait_until(lambda: hosts_up(server) == {"host-1"})
        before = provider(server)
        body = {"flavor": {"vcpus": 1, "memory_mb": 1}, "name": "web"}
        assert server.ask("POST", "/v1/instances", body, headers=ADMIN)[0] == 202
        wait_until(lambda: instances(server) == ["ACTIVE"])
        process.kill()
        process.wait()
    refused = roost(*adopt, cwd=tmp_path)
    assert (refused.returncode, "the agent of host-1 is running, last contact" in refused.stderr) == (5, True)
    assert server.ask("DELETE", "/v1/agents/host-1", headers=ADMIN)[0] == 204
    refused = roost(*adopt, cwd=tmp_path)
    assert (refused.returncode, "has orders or guests: it is not lost" in refused.stderr) == (5, True)
    for file in journals.iterdir():
        file.unlink()
    restart = roost("agent", "--server", server.address, "--driver", "fake", *options, cwd=tmp_path)
    assert (restart.returncode, "if this is lost, run `roost agent adopt host-1` first" in restart.stderr) == (5, True)
    adoption = roost(*adopt, cwd=tmp_path)
    assert (adoption.returncode, before[0] in adoption.stdout) == (0, True), adoption.stderr
    with running_agents(server, tmp_path, *options):
        wait_until(lambda: hosts_up(server) == {"host-1"})
        assert provider(server) == before
        assert list(guests_on(guests).values()) == [[("host-1", "running")]]
        (one,) = server.ask("GET", "/v1/instances", headers=ADMIN)[2]["instances"]
        assert one["status"] == "ACTIVE"
        assert server.ask("POST", f"/v1/instances/{one['uuid']}/stop", {}, headers=ADMIN)[0] == 202
        wait_until(lambda: instances(server) == ["SHUTOFF"])
        assert server.ask("DELETE", f"/v1/instances/{one['uuid']}", headers=ADMIN)[0] == 202
        wait_until(lambda: instances(server) == [])
        assert guests_on(guests) == {}


def test_host_without_an_agent_cannot_be_adopted(server, tmp_path):
    result = roost("agent", "adopt", "nowhere", "--url", server.address, "--state-dir", tmp_path / "new", cwd=tmp_path)
    assert (result.returncode, "no such agent: nowhere" in result.stderr) == (4, True), result.stderr
    assert not (tmp_path / "new").exists()
