"""Node uuids, and errors that end the agent, without a Placement."""

import pytest

from roost.compute.inventory.monitors import Monitors
from roost.compute.inventory.resource_tracker import Tracker
from roost.errors import (
    BadSettings,
    Conflict,
    InUse,
    JournalLost,
    PlacementGone,
    ReshapeFailed,
    ReshapeNeeded,
    SyncFailed,
)
from tests.support.agents.driver_doubles import fake_driver
from tests.support.agents.trackers import MemoryJournal
from tests.support.fleets.worlds import uuid_named


class FailingUpdater:
    """An updater of inventories that always fails."""

    def __init__(self, error):
        self._error = error

    def write(self, node, uuid, *, is_startup, is_disabled, devices):
        """Raise the error."""
        raise self._error


def tracker(error=None, *, driver=None, periodic_reshape="die", journal=None):
    """Return a tracker whose updates fail."""
    return Tracker(
        "host-a",
        driver=driver or fake_driver(),
        report=None,
        reshaper=FailingUpdater(error),
        journal=journal or MemoryJournal(),
        monitors=Monitors([]),
        periodic_reshape=periodic_reshape,
        new_uuid=lambda: "fresh",
    )


ENDS, GOES_ON = True, False


@pytest.mark.shows("S120", "S121")
@pytest.mark.parametrize(
    ("error", "at_start", "later"),
    [
        (ReshapeFailed("host-a", "no"), ENDS, ENDS),
        (ReshapeNeeded("host-a", "VGPU"), ENDS, ENDS),
        (InUse("held"), ENDS, GOES_ON),
        (BadSettings("node", "is another"), ENDS, GOES_ON),
        (JournalLost("the disk is full"), ENDS, ENDS),
        (SyncFailed("a part"), GOES_ON, GOES_ON),
        (Conflict("race"), GOES_ON, GOES_ON),
        (PlacementGone("away"), GOES_ON, GOES_ON),
        (ValueError("twice"), GOES_ON, GOES_ON),
        (RuntimeError("a fault"), GOES_ON, GOES_ON),
    ],
)
def test_update_error_ends_the_agent_or_is_logged(error, at_start, later, capfd):
    for is_startup, ends in ((True, at_start), (False, later)):
        if ends:
            with pytest.raises(type(error)):
                tracker(error).update("host-a", is_startup=is_startup)
        else:
            assert tracker(error).update("host-a", is_startup=is_startup) is None
        log = capfd.readouterr().err
        assert str(error) in log
        assert ("agent_ends" in log) == ends


@pytest.mark.shows("S121")
def test_reshape_needed_at_run_time_can_be_logged_only(capfd):
    needed = ReshapeNeeded("host-a", "VGPU")
    assert tracker(needed, periodic_reshape="log").update("host-a", is_startup=False) is None
    assert str(needed) in capfd.readouterr().err
    with pytest.raises(ReshapeNeeded):
        tracker(needed, periodic_reshape="log").update("host-a", is_startup=True)


def test_unknown_node_is_logged(capfd):
    assert tracker().update("nowhere", is_startup=True) is None
    assert "host host-a has no node nowhere" in capfd.readouterr().err


def test_incomplete_driver_resources_are_logged_with_the_keys(capfd):
    driver = fake_driver()
    driver.resources = lambda _: {"vcpus": 8}
    assert tracker(driver=driver).update("host-a", is_startup=True) is None
    assert "the resources of node host-a lack memory_mb, local_gb" in capfd.readouterr().err


def test_node_keeps_its_first_uuid():
    book = MemoryJournal()
    node_tracker = tracker(journal=book)
    assert (node_tracker.node_uuid("host-a"), book.nodes) == ("fresh", {"host-a": "fresh"})
    driver_uuid, other = uuid_named("told"), uuid_named("other")
    assert node_tracker.node_uuid("host-b", driver_uuid) == node_tracker.node_uuid("host-b") == driver_uuid
    with pytest.raises(BadSettings, match=f"reports uuid {other}, but its recorded uuid is {driver_uuid}"):
        node_tracker.node_uuid("host-b", other)
    with pytest.raises(BadSettings, match="reports 'serial 7', which is not a UUID"):
        node_tracker.node_uuid("host-c", "serial 7")
    assert "host-c" not in book.nodes
