"""Saved images from shelving to deletion, with real processes: a server, and agents with host tokens."""

import json
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.agents.libvirt_hosts import libvirt_module
from tests.support.fleets.products import roost
from tests.support.fleets.worlds import uuid_named
from tests.support.servers.clusters import AgentsProgram, Program, ServerProgram
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

HOSTS = ("one", "two")
FLAVOR = ("--flavor", "vcpus=1,memory_mb=64,root_gb=1")
SETTINGS = """
[placement]
auth_strategy = "tokens"
tokens_file = "tokens.toml"
"""
AGENT = "[agent]\nupdate_s = 0.5\nsync_power_state_interval = 1\n"


class Deployment:
    """A server with agents that share a folder, and its command line.

    Args:
        folder: shared by all processes.
    """

    def __init__(self, folder):
        self.folder, self.images = folder, folder / "guests" / "images"
        self.token = self._token("operator", "--role", "admin")
        # A running server reads new tokens only after a second.
        self.tokens = {host: self._token(f"agent-{host}", "--host", host) for host in HOSTS}
        self.server = ServerProgram(folder=folder, settings=SETTINGS)
        (folder / "agent.toml").write_text(AGENT)

    def agents(self):
        """Yield one agent per host, each with its own token."""
        for host in HOSTS:
            words = ("--token", self.tokens[host], "--config", self.folder / "agent.toml")
            yield AgentsProgram(
                self.server.address, *words, folder=self.folder, guests=self.folder / "guests", host=host, options={}
            )

    def run(self, *words):
        """Run ``roost instance``; return its JSON output."""
        options = ("--json", "--url", self.server.address, "--token", self.token)
        result = roost("instance", *words, *options, cwd=self.folder)
        assert result.returncode == 0, (result.stdout, result.stderr)
        return json.loads(result.stdout)

    def create(self, name):
        """Build an instance; return its uuid."""
        (created,) = self.run("create", name, *FLAVOR, "--wait")["instances"]
        return created["uuid"]

    def image_names(self):
        """Return the names of all image files."""
        return {path.stem for path in self.images.glob("*")}

    def are_up(self):
        """Return whether all hosts are up."""
        hosts = self.server.ask("GET", "/v1/agents", **{"x-auth-token": self.token})[1]["agents"]
        return {each["host"] for each in hosts if each["up"]} == set(HOSTS)

    def await_cleanup(self):
        """Wait for a cleanup of images: shelve and delete a marker instance until its image is gone."""
        marker = self.create("marker")
        self.run("shelve", marker, "--wait")
        assert f"saved-{marker}" in self.image_names()
        self.run("delete", marker, "--wait")
        wait_until(lambda: f"saved-{marker}" not in self.image_names())

    def _token(self, name, *words):
        output = roost("token", "create", name, *words, "--file", "tokens.toml", cwd=self.folder).stdout
        return output.splitlines()[0].strip()


@pytest.fixture
def deployment(tmp_path):
    found = Deployment(tmp_path)
    with ExitStack() as stack:
        stack.callback(found.server.kill)
        found.server.start()
        for each in found.agents():
            stack.callback(each.kill)
            each.start()
        wait_until(found.are_up)
        yield found


def test_image_exists_as_long_as_its_instance(deployment):
    run, image_names = deployment.run, deployment.image_names
    one, two = deployment.create("first"), deployment.create("second")
    for uuid in (one, two):
        (shelved,) = run("shelve", uuid, "--wait")["instances"]
        assert (shelved["status"], shelved["host"]) == ("SHELVED_OFFLOADED", "")
    stranger, operators = f"saved-{uuid_named('stranger')}", "saved-debian"
    for name in (stranger, operators):
        (deployment.images / f"{name}.json").write_text("[]")
    deployment.await_cleanup()
    assert image_names() == {f"saved-{one}", f"saved-{two}", stranger, operators}
    (back,) = run("unshelve", one, "--wait")["instances"]
    assert (back["status"], back["fault"]) == ("ACTIVE", "")
    run("delete", two, "--wait")
    wait_until(lambda: f"saved-{two}" not in image_names())
    deployment.await_cleanup()
    assert image_names() == {f"saved-{one}", stranger, operators}
    run("delete", one, "--wait")
    wait_until(lambda: image_names() == {stranger, operators})


def test_images_newer_than_a_restored_database_are_not_deleted(deployment):
    server, folder = deployment.server, deployment.folder
    old = deployment.create("old")
    deployment.run("shelve", old, "--wait")
    database = ("--data", folder)
    assert roost("db", "backup", "monday.backup", *database, cwd=folder).returncode == 0
    young = deployment.create("young")
    for words in (("shelve", young), ("delete", old)):
        deployment.run(*words, "--wait")
    wait_until(lambda: deployment.image_names() == {f"saved-{young}"})
    assert server.stop() == 0
    result = roost("db", "restore", "monday.backup", "--replace", *database, cwd=folder)
    assert result.returncode == 0, result.stderr
    server.start()
    wait_until(deployment.are_up)
    deployment.await_cleanup()
    assert deployment.image_names() == {f"saved-{young}"}
    assert deployment.run("list", "--name", "old")[0]["status"] == "SHELVED_OFFLOADED"
    assert deployment.run("list", "--name", "young") == []


@contextmanager
def libvirt_host(folder):
    """Yield a server, and a host on libvirt's test driver whose agent cleans up images each second."""
    libvirt_module()
    server = ServerProgram(folder=folder, settings="")
    server.start()
    (folder / "agent.toml").write_text(AGENT)
    agent = Program(
        "agent",
        "--server",
        server.address,
        "--driver",
        "libvirt",
        "--host",
        "one",
        "--state-dir",
        folder / "journals",
        "--config",
        folder / "agent.toml",
        "--option",
        "uri=test:///default",
        "--option",
        f"state={folder / 'state'}",
        folder=folder,
        log="agent.log",
    )
    try:
        agent.start()
        wait_until(lambda: server.listed("hosts"))
        yield server
        assert agent.stop() == 0
    finally:
        agent.kill()
        server.kill()


def test_libvirt_images_of_deleted_instances_go_and_operator_images_stay(tmp_path):
    images = tmp_path / "state" / "images"
    images.mkdir(parents=True)
    for name in ("debian", "saved-debian"):
        (images / name).write_bytes(b"of an operator")
    with libvirt_host(tmp_path) as server:
        uuids = []
        for name in ("first", "second"):
            words = ("create", name, *FLAVOR, "--wait", "--json", "--url", server.address)
            (created,) = json.loads(roost("instance", *words, cwd=tmp_path).stdout)["instances"]
            uuids.append(created["uuid"])
            result = roost("instance", "shelve", created["uuid"], "--wait", "--url", server.address, cwd=tmp_path)
            assert result.returncode == 0, (result.stdout, result.stderr)
        names = {path.name for path in images.iterdir()}
        assert names == {"debian", "saved-debian", *(f"saved-{uuid}" for uuid in uuids)}
        roost("instance", "delete", uuids[0], "--wait", "--url", server.address, cwd=tmp_path)
        wait_until(lambda: not (images / f"saved-{uuids[0]}").exists())
        names = {path.name for path in images.iterdir()}
        assert names == {"debian", "saved-debian", f"saved-{uuids[1]}"}
