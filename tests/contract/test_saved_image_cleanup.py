"""Agents at work that look at saved images: how often, and what a driver that fails or hangs there keeps them from."""

import json
import threading

import pytest

from roost.compute.agent.runtime import Pace
from roost.compute.agent.saved_images import SavedImages
from roost.compute.drivers.fake.guests import FolderShelf
from roost.compute.drivers.fake.script import Fault, Script
from roost.model.work.standing import Standing
from tests.support.agents.driver_doubles import fake, spec_of
from tests.support.agents.scripted_agents import MemoryServer, living, resident, spawn
from tests.support.fleets.worlds import uuid_named
from tests.support.waiting import until

pytestmark = pytest.mark.long

QUICK = Pace(driver_timeout_s=0.3, update_s=0.02, retry_s=0.02, images_s=0.02, stop_s=5.0)
HOSTS = ("host-a", "host-b", "host-c")


class Server(MemoryServer):
    """A server that also knows which instances are deleted; all others live."""

    def __init__(self):
        super().__init__()
        self.gone, self.asked = set(), []

    def standings(self, uuids):
        """Say what became of instances."""
        self.asked.append([*uuids])
        return {uuid: Standing(is_deleted=uuid in self.gone) for uuid in uuids}


def keeping(server, host="host-a", *, pace=QUICK, **more):
    """Give an agent that looks at the images of its driver."""
    driver = fake(host=host, **more)
    images = SavedImages(host, driver=driver, instances=server)
    return resident(host, driver=driver, images=images, pace=pace)


def save(driver, *names):
    """Let a driver save guests of these names, and get rid of them."""
    (node,) = driver.nodes()
    for name in names:
        driver.spawn(spec_of(name, node, is_on=False), "op-1")
        driver.save(uuid_named(name))
        driver.destroy(uuid_named(name), "op-2")


def events(text, event):
    """Give what was told of a kind of event."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


def test_hosts_that_share_a_folder_drop_each_image_once_its_instance_is_deleted(tmp_path, capfd):
    server = Server()
    residents = [keeping(server, host, shelf=FolderShelf(tmp_path)) for host in HOSTS]
    driver, names = residents[0].driver, [f"guest {number}" for number in range(30)]
    save(driver, *names)
    with living(server, *residents, pace=QUICK) as (ends, _):
        until(lambda: len(server.asked) > len(HOSTS))
        assert driver.saved_images() == sorted(map(uuid_named, names))
        server.gone |= set(map(uuid_named, names[1:]))
        until(lambda: driver.saved_images() == [uuid_named(names[0])])
        server.gone.add(uuid_named(names[0]))
        until(lambda: driver.saved_images() == [])
    assert ends == []
    told = capfd.readouterr().err
    assert events(told, "saved_images_stay") == []
    assert {line["instance"] for line in events(told, "saved_image_dropped")} == set(map(uuid_named, names))


@pytest.mark.parametrize(("images_s", "is_often"), [(0.02, True), (3600.0, False), (0.0, False), (-1.0, False)])
def test_an_agent_looks_as_often_as_it_is_told_and_at_its_start(images_s, is_often):
    server, pace = Server(), Pace(update_s=0.02, retry_s=0.02, images_s=images_s)
    one = keeping(server, pace=pace)
    save(one.driver, "guest")
    with living(server, one, pace=pace):
        until(lambda: len(server.asked) >= 3 if is_often else len(one.tracker.updates) > 4)
    assert (len(server.asked) > 1) == is_often
    assert server.asked[0] == [uuid_named("guest")]


def test_an_agent_that_cannot_be_tracked_yet_looks_at_nothing():
    server, one = Server(), None
    one = keeping(server)
    save(one.driver, "guest")
    tries = []
    one.tracker.update = lambda node, **_: tries.append(node)
    with living(server, one, pace=QUICK):
        until(lambda: len(tries) > 2)
    assert server.asked == []


@pytest.mark.parametrize("action", ["saved_images", "drop_saved_image"])
def test_a_driver_that_hangs_at_its_images_is_told_once_and_keeps_its_agent_from_nothing(action, capfd):
    server, go, hanging = Server(), threading.Event(), threading.Event()
    script = Script(fault=(Fault(action=action, kind="slow", times=1, host="host-a"),))
    one = keeping(server, script=script, wait=lambda _: (hanging.set(), go.wait(30)))
    other = keeping(server, "host-b")
    for each in (one, other):
        save(each.driver, "gone")
    server.gone.add(uuid_named("gone"))
    told = ""
    with living(server, one, other, pace=QUICK) as (ends, _):
        assert hanging.wait(30)
        until(lambda: other.driver.saved_images() == [])
        updates = len(one.tracker.updates)
        server.put(spawn(order_id=1), spawn("other", "host-b", order_id=2))
        assert (server.answer_to(1).outcome, server.answer_to(2).outcome) == ("ok", "ok")
        until(lambda: len(one.tracker.updates) > updates + 3)
        told += capfd.readouterr().err
        assert len(events(told, "hangs")) == 1
        go.set()
        until(lambda: one.driver.saved_images() == [])
    assert ends == []
    told += capfd.readouterr().err
    assert [line["problem"] for line in events(told, "hangs")] == ["look at the saved images of host host-a"]


@pytest.mark.parametrize("action", ["saved_images", "drop_saved_image"])
@pytest.mark.parametrize("kind", ["failed", "crash", "unready"])
def test_a_driver_that_fails_at_its_images_is_told_once_and_asked_again(action, kind, capfd):
    server, fault = Server(), Fault(action=action, kind=kind, times=3)
    one = keeping(server, script=Script(fault=(fault,)))
    save(one.driver, "gone")
    server.gone.add(uuid_named("gone"))
    with living(server, one, pace=QUICK) as (ends, _):
        server.put(spawn(order_id=1))
        assert server.answer_to(1).outcome == "ok"
        told = ""

        def is_dropped():
            nonlocal told
            told += capfd.readouterr().err
            return bool(events(told, "saved_image_dropped"))

        until(is_dropped)
    assert ends == []
    (line,) = events(told, "saved_images_stay")
    assert f"{action} on host-a was to go wrong ({kind})" in line["problem"]
    assert one.driver.saved_images() == []
