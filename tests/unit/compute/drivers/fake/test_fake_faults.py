import random

import pytest

from roost.compute.drivers.fake.driver import Fake
from roost.compute.drivers.fake.faults import FakeCrash, Faults
from roost.compute.drivers.fake.guests import MemoryShelf
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import BuildAborted, BuildFailed, DriverNotReady
from roost.model.work.agent_terms import HostTerms
from tests.support.agents.driver_doubles import fake, spec_of
from tests.support.fleets.worlds import uuid_named


def struck(*faults, acts, host="host-a", seed=0, waits=None):
    """Give what became of acts, one after another."""
    found = []
    drawn = Faults([*faults], host=host, chance=random.Random(seed), wait=[].append if waits is None else waits.append)
    for action in acts:
        try:
            drawn.strike(action)
        except (BuildFailed, BuildAborted, DriverNotReady, FakeCrash) as error:
            found.append(type(error))
        else:
            found.append(None)
    return found


@pytest.mark.parametrize(
    ("kind", "error", "waits"),
    [
        ("failed", BuildFailed, []),
        ("aborted", BuildAborted, []),
        ("crash", FakeCrash, []),
        ("unready", DriverNotReady, []),
        ("slow", None, [1.0]),
        ("hang", BuildFailed, [86_400.0]),
    ],
)
def test_an_act_goes_wrong_as_the_script_says(kind, error, waits):
    slept = []
    assert struck(Fault(action="spawn", kind=kind), acts=["spawn", "destroy"], waits=slept) == [error, None]
    assert slept == waits
    slept.clear()
    assert struck(Fault(action="spawn", kind=kind, delay_s=2.5), acts=["spawn"], waits=slept) == [error]
    assert slept == [2.5]


def test_it_goes_wrong_so_often_at_most():
    assert struck(Fault(action="spawn", times=2), acts=["spawn"] * 4) == [BuildFailed, BuildFailed, None, None]
    assert struck(Fault(action="spawn", times=0), acts=["spawn"]) == [None]


def test_the_first_that_is_drawn_counts():
    faults = Fault(action="spawn", times=1), Fault(action="spawn", kind="aborted", times=1)
    assert struck(*faults, acts=["spawn"] * 3) == [BuildFailed, BuildAborted, None]


def test_a_share_is_drawn_by_chance_and_a_seed_tells_it_again():
    fault = Fault(action="spawn", share=0.25)
    first = struck(fault, acts=["spawn"] * 400)
    assert 60 < first.count(BuildFailed) < 140
    assert struck(fault, acts=["spawn"] * 400) == first
    assert struck(fault, acts=["spawn"] * 400, seed=1) != first
    assert struck(Fault(action="spawn", share=0.0), acts=["spawn"] * 9) == [None] * 9


def test_only_the_hosts_that_are_meant_are_struck():
    fault = Fault(action="spawn", host="rack1-*")
    assert struck(fault, acts=["spawn"], host="rack1-7") == [BuildFailed]
    assert struck(fault, acts=["spawn"], host="rack2-7") == [None]


def test_the_message_names_action_and_host_or_is_that_of_the_script():
    with pytest.raises(BuildFailed, match="spawn on host-a was to go wrong"):
        fake(Script(fault=(Fault(action="spawn"),))).spawn(spec_of(), "op-1")
    with pytest.raises(BuildAborted, match="the image is broken"):
        fake(Script(fault=(Fault(action="spawn", kind="aborted", message="the image is broken"),))).spawn(
            spec_of(), "o"
        )


def test_a_driver_that_is_not_ready_is_asked_again():
    script = Script(fault=(Fault(action="start", kind="unready", times=2),))
    driver = Fake(script, terms=HostTerms(), chance=random.Random(0), shelf=MemoryShelf())
    for _ in range(2):
        with pytest.raises(DriverNotReady):
            driver.start("host-a")
    driver.start("host-a")
    driver.spawn(spec_of(), "op-1")
    driver.start("host-a")
    assert len(driver.guests()) == 1


def test_a_migration_is_aborted_while_it_is_slow():
    def meanwhile(_):
        source.abort_migration(uuid_named("guest"))

    shelf, slow = MemoryShelf(), Fault(action="live_migrate", kind="slow", times=1)
    source, target = fake(Script(fault=(slow,)), shelf=shelf, wait=meanwhile), fake(host="host-b", shelf=shelf)
    source.spawn(spec_of(), "op-1")
    to = target.prepare(spec_of(node="host-b"), "op-2")
    with pytest.raises(BuildFailed, match="was aborted"):
        source.live_migrate(uuid_named("guest"), to)
    assert [each.state for each in (*source.guests(), *target.guests())] == ["running", "prepared"]
    source.live_migrate(uuid_named("guest"), to)
    assert (source.guests(), [each.state for each in target.guests()]) == ([], ["running"])
