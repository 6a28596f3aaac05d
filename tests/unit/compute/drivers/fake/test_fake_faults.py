import random

import pytest

from roost.compute.drivers.fake.driver import Fake
from roost.compute.drivers.fake.faults import FakeCrash, Faults
from roost.compute.drivers.fake.guests import MemoryShelf
from roost.compute.drivers.fake.script import Fault, Script
from roost.errors import BuildAborted, BuildFailed, DriverNotReady
from roost.model.work.agent_terms import HostTerms
from tests.support.agents.driver_doubles import fake_driver, spec_of
from tests.support.fleets.worlds import uuid_named


def errors_of(*faults, acts, host="host-a", seed=0, waits=None):
    """Return the error types of consecutive actions; None: no error."""
    errors = []
    injector = Faults(
        [*faults], host=host, chance=random.Random(seed), wait=[].append if waits is None else waits.append
    )
    for action in acts:
        try:
            injector.strike(action)
        except (BuildFailed, BuildAborted, DriverNotReady, FakeCrash) as error:
            errors.append(type(error))
        else:
            errors.append(None)
    return errors


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
def test_fault_kind_selects_the_error_and_the_delay(kind, error, waits):
    pauses = []
    assert errors_of(Fault(action="spawn", kind=kind), acts=["spawn", "destroy"], waits=pauses) == [error, None]
    assert pauses == waits
    pauses.clear()
    assert errors_of(Fault(action="spawn", kind=kind, delay_s=2.5), acts=["spawn"], waits=pauses) == [error]
    assert pauses == [2.5]


def test_fault_strikes_at_most_the_given_times():
    assert errors_of(Fault(action="spawn", times=2), acts=["spawn"] * 4) == [BuildFailed, BuildFailed, None, None]
    assert errors_of(Fault(action="spawn", times=0), acts=["spawn"]) == [None]


def test_first_matching_fault_wins():
    faults = Fault(action="spawn", times=1), Fault(action="spawn", kind="aborted", times=1)
    assert errors_of(*faults, acts=["spawn"] * 3) == [BuildFailed, BuildAborted, None]


def test_fault_share_is_random_and_repeatable_by_seed():
    fault = Fault(action="spawn", share=0.25)
    first = errors_of(fault, acts=["spawn"] * 400)
    assert 60 < first.count(BuildFailed) < 140
    assert errors_of(fault, acts=["spawn"] * 400) == first
    assert errors_of(fault, acts=["spawn"] * 400, seed=1) != first
    assert errors_of(Fault(action="spawn", share=0.0), acts=["spawn"] * 9) == [None] * 9


def test_fault_strikes_only_matching_hosts():
    fault = Fault(action="spawn", host="rack1-*")
    assert errors_of(fault, acts=["spawn"], host="rack1-7") == [BuildFailed]
    assert errors_of(fault, acts=["spawn"], host="rack2-7") == [None]


def test_message_names_action_and_host_or_comes_from_the_script():
    with pytest.raises(BuildFailed, match="spawn on host-a was made to fail"):
        fake_driver(Script(fault=(Fault(action="spawn"),))).spawn(spec_of(), "op-1")
    with pytest.raises(BuildAborted, match="the image is broken"):
        fake_driver(Script(fault=(Fault(action="spawn", kind="aborted", message="the image is broken"),))).spawn(
            spec_of(), "o"
        )


def test_unready_driver_starts_on_a_later_attempt():
    script = Script(fault=(Fault(action="start", kind="unready", times=2),))
    driver = Fake(script, terms=HostTerms(), chance=random.Random(0), shelf=MemoryShelf())
    for _ in range(2):
        with pytest.raises(DriverNotReady):
            driver.start("host-a")
    driver.start("host-a")
    driver.spawn(spec_of(), "op-1")
    driver.start("host-a")
    assert len(driver.guests()) == 1


def test_slow_migration_can_be_aborted():
    def abort(_):
        source.abort_migration(uuid_named("guest"))

    shelf, slow = MemoryShelf(), Fault(action="live_migrate", kind="slow", times=1)
    source, target = (
        fake_driver(Script(fault=(slow,)), shelf=shelf, wait=abort),
        fake_driver(host="host-b", shelf=shelf),
    )
    source.spawn(spec_of(), "op-1")
    to = target.prepare(spec_of(node="host-b"), "op-2")
    with pytest.raises(BuildFailed, match="was aborted"):
        source.live_migrate(uuid_named("guest"), to)
    assert [each.state for each in (*source.guests(), *target.guests())] == ["running", "prepared"]
    source.live_migrate(uuid_named("guest"), to)
    assert (source.guests(), [each.state for each in target.guests()]) == ([], ["running"])
