"""Saved images from shelving to deletion, with real processes: a server, and agents with tokens of their hosts."""

import json
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.agents.libvirt_hosts import binding
from tests.support.fleets.products import roost
from tests.support.fleets.worlds import uuid_named
from tests.support.servers.clusters import AgentsProgram, Program, ServerProgram
from tests.support.waiting import until

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
    """A server whose agents share a folder, and what is asked of it.

    Args:
        folder: of all processes.
    """

    def __init__(self, folder):
        self.folder, self.images = folder, folder / "guests" / "images"
        self.token = self._token("operator", "--role", "admin")
        # A server that runs knows new tokens after a second only.
        self.tokens = {host: self._token(f"agent-{host}", "--host", host) for host in HOSTS}
        self.server = ServerProgram(folder=folder, settings=SETTINGS)
        (folder / "agent.toml").write_text(AGENT)

    def agents(self):
        """Give an agent a host, each with a token of its own."""
        for host in HOSTS:
            words = ("--token", self.tokens[host], "--config", self.folder / "agent.toml")
            yield AgentsProgram(
                self.server.address, *words, folder=self.folder, guests=self.folder / "guests", host=host, options={}
            )

    def said(self, *words):
        """Run ``roost instance``; give what it prints."""
        told = ("--json", "--url", self.server.address, "--token", self.token)
        done = roost("instance", *words, *told, cwd=self.folder)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def created(self, name):
        """Let an instance be built; give its uuid."""
        (built,) = self.said("create", name, *FLAVOR, "--wait")["instances"]
        return built["uuid"]

    def saved(self):
        """Give the names of all files of images."""
        return {path.stem for path in self.images.glob("*")}

    def are_up(self):
        """Say whether all hosts are."""
        hosts = self.server.ask("GET", "/v1/agents", **{"x-auth-token": self.token})[1]["agents"]
        return {each["host"] for each in hosts if each["up"]} == set(HOSTS)

    def look(self):
        """Let agents look at all images that there are: the image of an instance that comes and goes has to go."""
        marker = self.created("marker")
        self.said("shelve", marker, "--wait")
        assert f"saved-{marker}" in self.saved()
        self.said("delete", marker, "--wait")
        until(lambda: f"saved-{marker}" not in self.saved())

    def _token(self, name, *words):
        made = roost("token", "create", name, *words, "--file", "tokens.toml", cwd=self.folder)
        return made.stdout.splitlines()[0].strip()


@pytest.fixture
def deployment(tmp_path):
    found = Deployment(tmp_path)
    with ExitStack() as stack:
        stack.callback(found.server.kill)
        found.server.start()
        for each in found.agents():
            stack.callback(each.kill)
            each.start()
        until(found.are_up)
        yield found


def test_an_image_stays_as_long_as_its_instance_and_goes_with_it(deployment):
    said, saved = deployment.said, deployment.saved
    one, two = deployment.created("first"), deployment.created("second")
    for uuid in (one, two):
        (shelved,) = said("shelve", uuid, "--wait")["instances"]
        assert (shelved["status"], shelved["host"]) == ("SHELVED_OFFLOADED", "")
    stranger, operators = f"saved-{uuid_named('stranger')}", "saved-debian"
    for name in (stranger, operators):
        (deployment.images / f"{name}.json").write_text("[]")
    deployment.look()
    assert saved() == {f"saved-{one}", f"saved-{two}", stranger, operators}
    (back,) = said("unshelve", one, "--wait")["instances"]
    assert (back["status"], back["fault"]) == ("ACTIVE", "")
    said("delete", two, "--wait")
    until(lambda: f"saved-{two}" not in saved())
    deployment.look()
    assert saved() == {f"saved-{one}", stranger, operators}
    said("delete", one, "--wait")
    until(lambda: saved() == {stranger, operators})


def test_images_that_are_younger_than_the_database_stay(deployment):
    server, folder = deployment.server, deployment.folder
    old = deployment.created("old")
    deployment.said("shelve", old, "--wait")
    database = ("--data", folder)
    assert roost("db", "backup", "monday.backup", *database, cwd=folder).returncode == 0
    young = deployment.created("young")
    for words in (("shelve", young), ("delete", old)):
        deployment.said(*words, "--wait")
    until(lambda: deployment.saved() == {f"saved-{young}"})
    assert server.stop() == 0
    done = roost("db", "restore", "monday.backup", "--replace", *database, cwd=folder)
    assert done.returncode == 0, done.stderr
    server.start()
    until(deployment.are_up)
    deployment.look()
    assert deployment.saved() == {f"saved-{young}"}
    assert deployment.said("list", "--name", "old")[0]["status"] == "SHELVED_OFFLOADED"
    assert deployment.said("list", "--name", "young") == []


@contextmanager
def libvirt_host(folder):
    """Give a server, and a host on libvirt's test driver whose agent looks at images each second."""
    binding()
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
        until(lambda: server.listed("hosts"))
        yield server
        assert agent.stop() == 0
    finally:
        agent.kill()
        server.kill()


def test_images_of_libvirt_go_and_those_of_operators_stay(tmp_path):
    images = tmp_path / "state" / "images"
    images.mkdir(parents=True)
    for name in ("debian", "saved-debian"):
        (images / name).write_bytes(b"of an operator")
    with libvirt_host(tmp_path) as server:
        uuids = []
        for name in ("first", "second"):
            words = ("create", name, *FLAVOR, "--wait", "--json", "--url", server.address)
            (built,) = json.loads(roost("instance", *words, cwd=tmp_path).stdout)["instances"]
            uuids.append(built["uuid"])
            done = roost("instance", "shelve", built["uuid"], "--wait", "--url", server.address, cwd=tmp_path)
            assert done.returncode == 0, (done.stdout, done.stderr)
        names = {path.name for path in images.iterdir()}
        assert names == {"debian", "saved-debian", *(f"saved-{uuid}" for uuid in uuids)}
        roost("instance", "delete", uuids[0], "--wait", "--url", server.address, cwd=tmp_path)
        until(lambda: not (images / f"saved-{uuids[0]}").exists())
        names = {path.name for path in images.iterdir()}
        assert names == {"debian", "saved-debian", f"saved-{uuids[1]}"}
