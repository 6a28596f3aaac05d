"""Which saved images go: those of instances that are known and deleted, and of nobody else."""

import json

import pytest

from roost.compute.agent.saved_images import SavedImages, find_deleted
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import BadSettings, Unavailable
from roost.model.work.standing import STANDINGS_MAX, Standing
from tests.support.agents.driver_doubles import fake, spec_of
from tests.support.fleets.worlds import uuid_named

GONE = Standing(is_deleted=True)
LIVING = {
    "shelved": Standing(),
    "runs": Standing(host="host-a"),
    "elsewhere": Standing(host="host-b"),
    "busy": Standing(is_busy=True),
}


class Known:
    """Knows what it was given, or fails first."""

    def __init__(self, standings, *errors):
        self.known = {uuid_named(name): standing for name, standing in standings.items()}
        self.errors, self.asked = [*errors], []

    def standings(self, uuids):
        """Say what became of instances."""
        self.asked.append([*uuids])
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error
        return {uuid: self.known[uuid] for uuid in uuids if uuid in self.known}


class Keeper:
    """A driver that keeps images of whatever it is given."""

    def __init__(self, *uuids):
        self.kept, self.dropped = uuids, []

    def saved_images(self):
        """Tell it."""
        return [*self.kept]

    def drop_saved_image(self, uuid):
        """Note it."""
        self.dropped.append(uuid)


def saving(*names, faults=()):
    """Give a driver that has saved guests of these names."""
    driver = fake(Script(fault=faults))
    for name in names:
        driver.spawn(spec_of(name, is_on=False), "op-1")
        driver.save(uuid_named(name))
    return driver


def images_of(driver, known):
    return SavedImages("host-a", driver=driver, instances=known)


def told(capfd, event):
    """Give the events of a kind that were told since the last time."""
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


def test_images_of_deleted_instances_go_and_those_of_unknown_and_living_ones_stay(capfd):
    driver, known = saving("gone", "unknown", *LIVING), Known({"gone": GONE, **LIVING})
    images = images_of(driver, known)
    assert images.drop_deleted() == [uuid_named("gone")]
    assert driver.saved_images() == sorted(map(uuid_named, ["unknown", *LIVING]))
    assert [line["instance"] for line in told(capfd, "saved_image_dropped")] == [uuid_named("gone")]
    assert images.drop_deleted() == []
    known.known[uuid_named("shelved")] = GONE
    assert images.drop_deleted() == [uuid_named("shelved")]
    assert told(capfd, "saved_images_stay") == []


def test_nobody_is_asked_where_nothing_is_kept():
    known = Known({})
    assert (images_of(saving(), known).drop_deleted(), known.asked) == ([], [])


def test_what_the_server_does_not_answer_stays_and_is_told_once(capfd):
    away = [Unavailable("the server is away")] * 2
    driver, known = saving("gone"), Known({"gone": GONE}, *away, BadSettings("token", "is for another host"))
    images = images_of(driver, known)
    problems = []
    for _ in range(3):
        assert images.drop_deleted() == []
        problems.append([line["problem"] for line in told(capfd, "saved_images_stay")])
    assert problems == [["the server is away"], [], ["token: is for another host"]]
    assert images.drop_deleted() == [uuid_named("gone")]
    known.errors.append(Unavailable("the server is away"))
    driver.spawn(spec_of("gone", is_on=False), "op-2")
    driver.save(uuid_named("gone"))
    assert images.drop_deleted() == []
    assert len(told(capfd, "saved_images_stay")) == 1


def test_each_answer_is_acted_upon_before_the_next_is_asked_for():
    names = [f"guest {number}" for number in range(2 * STANDINGS_MAX + 1)]
    driver = Keeper(*map(uuid_named, names))
    known = Known(dict.fromkeys(names, GONE), None, Unavailable("the server is away"))
    assert len(images_of(driver, known).drop_deleted()) == STANDINGS_MAX
    assert driver.dropped == sorted(driver.kept)[:STANDINGS_MAX]
    driver = Keeper(*driver.kept)
    assert images_of(driver, known).drop_deleted() == driver.dropped == sorted(driver.kept)
    assert [*map(len, known.asked)] == [STANDINGS_MAX, STANDINGS_MAX, STANDINGS_MAX, STANDINGS_MAX, 1]


def test_an_image_that_cannot_be_dropped_keeps_no_other_one_and_is_told_once(capfd):
    crash = Fault(action="drop_saved_image", kind="crash", times=2)
    driver = saving("a", "b", "c", faults=(crash,))
    images = images_of(driver, Known(dict.fromkeys("abc", GONE)))
    assert len(images.drop_deleted()) == 1
    (line,) = told(capfd, "saved_images_stay")
    assert line["problem"] == "FakeCrash: drop_saved_image on host-a was to go wrong (crash)"
    assert len(images.drop_deleted()) == 2
    assert driver.saved_images() == []


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, RuntimeError])
def test_a_driver_may_raise_whatever_it_likes(kind, capfd):
    driver = Keeper()

    def fail():
        raise kind("saved_images is broken")

    driver.saved_images = fail
    images = images_of(driver, Known({}))
    assert [images.drop_deleted(), images.drop_deleted()] == [[], []]
    (line,) = told(capfd, "saved_images_stay")
    assert line["problem"] == f"{kind.__name__}: saved_images is broken"


@pytest.mark.parametrize(
    "answer", [None, "c0ffee00-c0ff-ee00-c0ff-ee00c0ffee00", {}, [1], [None], ["saved-x"], ["C0FFEE00" * 4]], ids=str
)
def test_what_is_no_list_of_uuids_is_not_believed(answer, capfd):
    driver, known = Keeper(), Known({})
    driver.saved_images = lambda: answer
    assert (images_of(driver, known).drop_deleted(), known.asked) == ([], [])
    (line,) = told(capfd, "saved_images_stay")
    assert line["problem"].startswith("TypeError: saved_images of the driver returned ")


def test_who_is_told_twice_is_asked_for_once():
    driver, known = Keeper(uuid_named("gone"), uuid_named("gone")), Known({"gone": GONE})
    assert images_of(driver, known).drop_deleted() == driver.dropped == [uuid_named("gone")]


def test_only_who_is_known_as_deleted_is_deleted():
    assert find_deleted(["b", "c", "a"], {"a": GONE, "b": GONE, "c": Standing(host="host-a")}) == ["b", "a"]
    assert find_deleted(["a"], {}) == []
