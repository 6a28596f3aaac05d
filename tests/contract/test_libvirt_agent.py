"""``roost agent --driver libvirt`` as a process: on libvirt's test driver, and with guests that really boot."""

import os
import signal
from contextlib import contextmanager
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from tests.support.agents.libvirt_hosts import boot_sector, libvirt_module, qemu_uri_elsewhere, short_folder
from tests.support.fleets.products import roost
from tests.support.servers.clusters import Program, ServerProgram

pytestmark = pytest.mark.long

HOST = "host-1"
FLAVOR = "vcpus=1,memory_mb=32,root_gb=1"


@contextmanager
def libvirt_deployment(folder, **options):
    """Yield a server and the agent of its only host, with driver libvirt and the given options."""
    server = ServerProgram(folder=folder, settings="")
    server.start()
    (folder / "agent.toml").write_text("[agent]\nsync_power_state_interval = 2\n")
    option_words = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
    agent = Program(
        "agent",
        "--server",
        server.address,
        "--driver",
        "libvirt",
        "--host",
        HOST,
        "--state-dir",
        folder / "journals",
        "--config",
        folder / "agent.toml",
        "--option",
        f"state={folder / 'state'}",
        "--option",
        f"images={folder / 'images'}",
        *option_words,
        folder=folder,
        log="agent.log",
    )
    try:
        agent.start()
        agent.until(lambda: server.listed("hosts"))
        yield server, agent
        assert agent.stop() == 0
    finally:
        agent.kill()
        server.kill()


def provider(server):
    """Return inventories, traits and usages of the only provider in Placement."""
    (root,) = server.asked("GET", "/placement/resource_providers")[1]["resource_providers"]
    assert root["name"] == HOST
    path = f"/placement/resource_providers/{root['uuid']}"
    return [server.asked("GET", f"{path}/{part}")[1][part] for part in ("inventories", "traits", "usages")]


def pid_of_qemu(folder):
    """Return the process id of the only guest in a libvirt folder, or 0."""
    for path in folder.rglob("*.pid"):
        command = Path("/proc", path.read_text().strip() or "none", "cmdline")
        if command.exists() and b"qemu-system" in command.read_bytes():
            return int(command.parent.name)
    return 0


def instance(server, folder, *words):
    """Run ``roost instance``; return its output."""
    found = roost("instance", *words, "--url", server.address, cwd=folder)
    attempts = [
        server.asked("GET", f"/v1/instances/{each['uuid']}")[1]["attempts"] for each in server.listed("instances")
    ]
    assert found.returncode == 0, (found.stderr, str(attempts))
    return found.stdout


def test_libvirt_host_reaches_placement_and_an_instance_is_created_and_deleted(tmp_path):
    capabilities = fromstring(libvirt_module().open("test:///default").getCapabilities())
    cells = capabilities.findall("host/topology/cells/cell")
    memory_kib = sum(int(cell.findtext("memory")) for cell in cells)
    processors = sum(len(cell.findall("cpus/cpu")) for cell in cells)
    with libvirt_deployment(tmp_path, uri="test:///default") as (server, agent):
        inventories, traits, usages = provider(server)
        assert inventories["VCPU"]["total"] == processors
        assert inventories["MEMORY_MB"]["total"] == memory_kib // 1024
        assert inventories["DISK_GB"]["total"] > 0
        assert {"COMPUTE_NODE", "OWNER_NOVA"} <= set(traits)
        assert not any(usages.values())
        output = instance(server, tmp_path, "create", "web", "--flavor", FLAVOR, "--wait")
        assert "ACTIVE" in output, (output, agent.log.read_text())
        assert {name: used for name, used in provider(server)[2].items() if used} == {
            "VCPU": 1,
            "MEMORY_MB": 32,
            "DISK_GB": 1,
        }
        (shown,) = server.listed("instances")
        instance(server, tmp_path, "delete", shown["uuid"], "--wait")
        assert server.listed("instances") == []
        assert not any(provider(server)[2].values())


@pytest.fixture
def libvirt_folder():
    with short_folder() as folder:
        yield folder


def test_instance_boots_and_its_output_is_on_its_console(tmp_path, libvirt_folder):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "greeting").write_bytes(boot_sector("roost lives"))
    uri = qemu_uri_elsewhere(libvirt_folder)
    with libvirt_deployment(tmp_path, uri=uri, virt_type="qemu", shutdown_s=0) as (server, agent):
        assert server.asked("PUT", "/v1/images/greeting", {"id": "greeting"})[0] == 200
        output = instance(server, tmp_path, "create", "web", "--flavor", FLAVOR, "--image", "greeting", "--wait")
        assert "ACTIVE" in output, (output, agent.log.read_text())
        (console,) = (tmp_path / "state").rglob("console.log")
        agent.until(lambda: b"roost lives" in console.read_bytes())
        (shown,) = server.listed("instances")
        os.kill(agent.until(lambda: pid_of_qemu(libvirt_folder)), signal.SIGKILL)
        agent.until(lambda: server.listed("instances")[0]["status"] == "SHUTOFF")
        assert "ACTIVE" in instance(server, tmp_path, "start", shown["uuid"], "--wait")
        assert pid_of_qemu(libvirt_folder)
        instance(server, tmp_path, "delete", shown["uuid"], "--wait")
        assert not console.exists()
        assert not any(provider(server)[2].values())
