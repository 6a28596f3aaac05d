"""Saved images are dropped only if their instance is known to be deleted."""

import json

import pytest

from roost.compute.agent.saved_images import SavedImages, find_deleted
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import BadSettings, Unavailable
from roost.model.work.standing import STANDINGS_MAX, Standing
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.fleets.worlds import uuid_named

GONE = Standing(is_deleted=True)
LIVING = {
    "shelved": Standing(),
    "runs": Standing(host="host-a"),
    "elsewhere": Standing(host="host-b"),
    "busy": Standing(is_busy=True),
}


class InstanceDirectory:
    """A look-up of instances, which first raises the given errors, one per request; None: no error."""

    def __init__(self, standings, *errors):
        self.standings_by_uuid = {uuid_named(name): standing for name, standing in standings.items()}
        self.errors, self.requests = [*errors], []

    def standings(self, uuids):
        """Return the standings of known instances."""
        self.requests.append([*uuids])
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return {uuid: self.standings_by_uuid[uuid] for uuid in uuids if uuid in self.standings_by_uuid}


class ImageDriver:
    """A driver with saved images of these instances."""

    def __init__(self, *uuids):
        self.images, self.drops = uuids, []

    def saved_images(self):
        """Return the uuids."""
        return [*self.images]

    def drop_saved_image(self, uuid):
        """Record the call."""
        self.drops.append(uuid)


def driver_with_images(*names, faults=()):
    """Return a driver that has saved guests of these names."""
    driver = fake_driver(Script(fault=faults))
    for name in names:
        driver.spawn(spec_of(name, is_on=False), "op-1")
        driver.save(uuid_named(name))
    return driver


def images_of(driver, instances):
    return SavedImages("host-a", driver=driver, instances=instances)


def read_events(capfd, event):
    """Return the events of a kind that were logged since the last call."""
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


def test_only_images_of_deleted_instances_are_dropped(capfd):
    driver, instances = driver_with_images("gone", "unknown", *LIVING), InstanceDirectory({"gone": GONE, **LIVING})
    images = images_of(driver, instances)
    assert images.drop_deleted() == [uuid_named("gone")]
    assert driver.saved_images() == sorted(map(uuid_named, ["unknown", *LIVING]))
    assert [line["instance"] for line in read_events(capfd, "saved_image_dropped")] == [uuid_named("gone")]
    assert images.drop_deleted() == []
    instances.standings_by_uuid[uuid_named("shelved")] = GONE
    assert images.drop_deleted() == [uuid_named("shelved")]
    assert read_events(capfd, "saved_images_stay") == []


def test_no_lookup_without_saved_images():
    instances = InstanceDirectory({})
    assert (images_of(driver_with_images(), instances).drop_deleted(), instances.requests) == ([], [])


def test_images_stay_and_the_error_is_logged_once_when_lookup_fails(capfd):
    errors = [*[Unavailable("the server is away")] * 2, BadSettings("token", "is for another host")]
    driver, instances = driver_with_images("gone"), InstanceDirectory({"gone": GONE}, *errors)
    images = images_of(driver, instances)
    problems = []
    for _ in range(3):
        assert images.drop_deleted() == []
        problems.append([line["problem"] for line in read_events(capfd, "saved_images_stay")])
    assert problems == [["the server is away"], [], ["token: is for another host"]]
    assert images.drop_deleted() == [uuid_named("gone")]
    instances.errors.append(Unavailable("the server is away"))
    driver.spawn(spec_of("gone", is_on=False), "op-2")
    driver.save(uuid_named("gone"))
    assert images.drop_deleted() == []
    assert len(read_events(capfd, "saved_images_stay")) == 1


def test_images_of_a_batch_are_dropped_before_the_next_lookup():
    names = [f"guest {number}" for number in range(2 * STANDINGS_MAX + 1)]
    driver = ImageDriver(*map(uuid_named, names))
    instances = InstanceDirectory(dict.fromkeys(names, GONE), None, Unavailable("the server is away"))
    assert len(images_of(driver, instances).drop_deleted()) == STANDINGS_MAX
    assert driver.drops == sorted(driver.images)[:STANDINGS_MAX]
    driver = ImageDriver(*driver.images)
    assert images_of(driver, instances).drop_deleted() == driver.drops == sorted(driver.images)
    assert [*map(len, instances.requests)] == [STANDINGS_MAX, STANDINGS_MAX, STANDINGS_MAX, STANDINGS_MAX, 1]


def test_failed_drop_is_logged_once_and_does_not_block_other_images(capfd):
    crash = Fault(action="drop_saved_image", kind="crash", times=2)
    driver = driver_with_images("a", "b", "c", faults=(crash,))
    images = images_of(driver, InstanceDirectory(dict.fromkeys("abc", GONE)))
    assert len(images.drop_deleted()) == 1
    (line,) = read_events(capfd, "saved_images_stay")
    assert line["problem"] == "FakeCrash: drop_saved_image on host-a was made to fail (crash)"
    assert len(images.drop_deleted()) == 2
    assert driver.saved_images() == []


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, RuntimeError])
def test_any_driver_exception_is_logged_once(kind, capfd):
    driver = ImageDriver()

    def fail():
        raise kind("saved_images is broken")

    driver.saved_images = fail
    images = images_of(driver, InstanceDirectory({}))
    assert [images.drop_deleted(), images.drop_deleted()] == [[], []]
    (line,) = read_events(capfd, "saved_images_stay")
    assert line["problem"] == f"{kind.__name__}: saved_images is broken"


@pytest.mark.parametrize(
    "answer", [None, "c0ffee00-c0ff-ee00-c0ff-ee00c0ffee00", {}, [1], [None], ["saved-x"], ["C0FFEE00" * 4]], ids=str
)
def test_invalid_image_list_is_rejected(answer, capfd):
    driver, instances = ImageDriver(), InstanceDirectory({})
    driver.saved_images = lambda: answer
    assert (images_of(driver, instances).drop_deleted(), instances.requests) == ([], [])
    (line,) = read_events(capfd, "saved_images_stay")
    assert line["problem"].startswith("TypeError: saved_images of the driver returned ")


def test_duplicate_image_is_dropped_once():
    driver, instances = ImageDriver(uuid_named("gone"), uuid_named("gone")), InstanceDirectory({"gone": GONE})
    assert images_of(driver, instances).drop_deleted() == driver.drops == [uuid_named("gone")]


def test_find_deleted_returns_only_known_deleted_instances():
    assert find_deleted(["b", "c", "a"], {"a": GONE, "b": GONE, "c": Standing(host="host-a")}) == ["b", "a"]
    assert find_deleted(["a"], {}) == []
