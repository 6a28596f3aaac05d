"""Cleanup of saved images by running agents: its interval, and its isolation from a failing or hung driver."""

import json
import threading

import pytest

from roost.compute.agent.runtime import Pace
from roost.compute.agent.saved_images import SavedImages
from roost.compute.drivers.fake.guests import FolderShelf
from roost.compute.drivers.fake.script import Fault, Script
from roost.model.work.standing import Standing
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.agents.scripted_agents import MemoryServer, resident, run_agents, spawn
from tests.support.fleets.worlds import uuid_named
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

QUICK = Pace(driver_timeout_s=0.3, update_s=0.02, retry_s=0.02, images_s=0.02, stop_s=5.0)
HOSTS = ("host-a", "host-b", "host-c")


class Server(MemoryServer):
    """A server that also knows the deleted instances; all others exist."""

    def __init__(self):
        super().__init__()
        self.deleted, self.queries = set(), []

    def standings(self, uuids):
        """Return the standing of each instance."""
        self.queries.append([*uuids])
        return {uuid: Standing(is_deleted=uuid in self.deleted) for uuid in uuids}


def cleaning_agent(server, host="host-a", *, pace=QUICK, **more):
    """Return an agent that cleans up the images of its driver."""
    driver = fake_driver(host=host, **more)
    images = SavedImages(host, driver=driver, instances=server)
    return resident(host, driver=driver, images=images, pace=pace)


def save(driver, *names):
    """Save guests with these names, then destroy them."""
    (node,) = driver.nodes()
    for name in names:
        driver.spawn(spec_of(name, node, is_on=False), "op-1")
        driver.save(uuid_named(name))
        driver.destroy(uuid_named(name), "op-2")


def events(text, event):
    """Return the log lines of an event."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


def test_hosts_sharing_a_folder_drop_each_image_of_a_deleted_instance_once(tmp_path, capfd):
    server = Server()
    residents = [cleaning_agent(server, host, shelf=FolderShelf(tmp_path)) for host in HOSTS]
    driver, names = residents[0].driver, [f"guest {number}" for number in range(30)]
    save(driver, *names)
    with run_agents(server, *residents, pace=QUICK) as (agent_errors, _):
        wait_until(lambda: len(server.queries) > len(HOSTS))
        assert driver.saved_images() == sorted(map(uuid_named, names))
        server.deleted |= set(map(uuid_named, names[1:]))
        wait_until(lambda: driver.saved_images() == [uuid_named(names[0])])
        server.deleted.add(uuid_named(names[0]))
        wait_until(lambda: driver.saved_images() == [])
    assert agent_errors == []
    log = capfd.readouterr().err
    assert events(log, "saved_images_stay") == []
    assert {line["instance"] for line in events(log, "saved_image_dropped")} == set(map(uuid_named, names))


@pytest.mark.parametrize(("images_s", "is_often"), [(0.02, True), (3600.0, False), (0.0, False), (-1.0, False)])
def test_image_cleanup_runs_at_the_start_and_at_its_interval(images_s, is_often):
    server, pace = Server(), Pace(update_s=0.02, retry_s=0.02, images_s=images_s)
    one = cleaning_agent(server, pace=pace)
    save(one.driver, "guest")
    with run_agents(server, one, pace=pace):
        wait_until(lambda: len(server.queries) >= 3 if is_often else len(one.tracker.updates) > 4)
    assert (len(server.queries) > 1) == is_often
    assert server.queries[0] == [uuid_named("guest")]


def test_image_cleanup_waits_until_the_host_is_tracked():
    server, one = Server(), None
    one = cleaning_agent(server)
    save(one.driver, "guest")
    tries = []
    one.tracker.update = lambda node, **_: tries.append(node)
    with run_agents(server, one, pace=QUICK):
        wait_until(lambda: len(tries) > 2)
    assert server.queries == []


@pytest.mark.parametrize("action", ["saved_images", "drop_saved_image"])
def test_hung_image_cleanup_is_logged_once_and_does_not_block_the_agent(action, capfd):
    server, go, is_hanging = Server(), threading.Event(), threading.Event()
    script = Script(fault=(Fault(action=action, kind="slow", times=1, host="host-a"),))
    one = cleaning_agent(server, script=script, wait=lambda _: (is_hanging.set(), go.wait(30)))
    other = cleaning_agent(server, "host-b")
    for each in (one, other):
        save(each.driver, "gone")
    server.deleted.add(uuid_named("gone"))
    log = ""
    with run_agents(server, one, other, pace=QUICK) as (agent_errors, _):
        assert is_hanging.wait(30)
        wait_until(lambda: other.driver.saved_images() == [])
        updates = len(one.tracker.updates)
        server.put(spawn(order_id=1), spawn("other", "host-b", order_id=2))
        assert (server.answer_to(1).outcome, server.answer_to(2).outcome) == ("ok", "ok")
        wait_until(lambda: len(one.tracker.updates) > updates + 3)
        log += capfd.readouterr().err
        assert len(events(log, "hangs")) == 1
        go.set()
        wait_until(lambda: one.driver.saved_images() == [])
    assert agent_errors == []
    log += capfd.readouterr().err
    assert [line["problem"] for line in events(log, "hangs")] == ["check of the saved images of host host-a"]


@pytest.mark.parametrize("action", ["saved_images", "drop_saved_image"])
@pytest.mark.parametrize("kind", ["failed", "crash", "unready"])
def test_failed_image_cleanup_is_logged_once_and_retried(action, kind, capfd):
    server, fault = Server(), Fault(action=action, kind=kind, times=3)
    one = cleaning_agent(server, script=Script(fault=(fault,)))
    save(one.driver, "gone")
    server.deleted.add(uuid_named("gone"))
    with run_agents(server, one, pace=QUICK) as (agent_errors, _):
        server.put(spawn(order_id=1))
        assert server.answer_to(1).outcome == "ok"
        log = ""

        def is_dropped():
            nonlocal log
            log += capfd.readouterr().err
            return bool(events(log, "saved_image_dropped"))

        wait_until(is_dropped)
    assert agent_errors == []
    (line,) = events(log, "saved_images_stay")
    assert f"{action} on host-a was made to fail ({kind})" in line["problem"]
    assert one.driver.saved_images() == []
