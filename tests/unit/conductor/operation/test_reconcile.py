import pytest

from roost.conductor.operation.reconcile import reconcile
from tests.contract.stores import uuid_of
from tests.support.conductors.work_rows import migration, status

ONE = uuid_of("instance", 1)
STATUSES = ["BUILD", "ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "ERROR", "DELETED"]


def fate(row, *moves, host="h1"):
    result = reconcile(host, [ONE], statuses={} if row is None else {ONE: row}, migrations=moves)
    return next(name for name in ("keep", "hold", "destroy") if ONE in getattr(result, name))


@pytest.mark.parametrize("state", STATUSES)
@pytest.mark.parametrize("host", ["H1", "h2", ""])
def test_only_guests_of_deleted_or_moved_instances_are_destroyed(state, host):
    if state == "DELETED":
        expected = "destroy"
    elif host == "":
        expected = "keep" if state == "BUILD" else "destroy"
    else:
        expected = "keep" if host == "H1" else "destroy"
    assert fate(status(status=state, host=host, task="")) == expected


def test_unknown_guest_is_kept():
    assert fate(None) == "keep"


@pytest.mark.parametrize(
    ("kind", "state", "source", "target", "expected"),
    [
        ("resize", "moving", "h2", "h1", "keep"),
        ("resize", "finished", "H1", "h2", "keep"),
        ("migrate", "reverting", "h2", "h1", "keep"),
        ("live", "moving", "h1", "h2", "keep"),
        ("resize", "confirmed", "h1", "h2", "destroy"),
        ("resize", "failed", "h2", "h1", "destroy"),
        ("resize", "moving", "h2", "h3", "destroy"),
        ("evacuate", "moving", "h1", "h2", "hold"),
        ("evacuate", "moving", "h2", "h1", "keep"),
        ("evacuate", "finished", "H1", "h2", "destroy"),
        ("evacuate", "confirmed", "h1", "h2", "destroy"),
        ("live", "finished", "h1", "h2", "destroy"),
        ("live", "moving", "h2", "h1", "keep"),
        ("evacuate", "finished", "h3", "h1", "destroy"),
        ("live", "left", "h3", "h1", "destroy"),
    ],
)
def test_move_keeps_the_guests_it_may_still_need(kind, state, source, target, expected):
    row = status(status="ACTIVE", host="h2")
    assert fate(row, migration(kind=kind, status=state, source_host=source, target_host=target)) == expected


def test_guest_is_held_on_its_host_until_the_evacuation_ends():
    home = status(status="ACTIVE", host="h1")
    moving = migration(kind="evacuate", status="moving", source_host="h1", target_host="h2")
    assert fate(home, moving) == "hold"
    assert fate(home, migration(kind="evacuate", status="failed", source_host="h1")) == "keep"
    assert not reconcile("h1", [ONE], statuses={ONE: home}, migrations=[moving]).is_clean


def test_guest_of_an_evacuated_instance_is_destroyed_if_the_instance_is_being_deleted():
    moving = migration(kind="evacuate", status="moving", source_host="h1", target_host="h2")
    assert fate(status(status="ACTIVE", host="h1", task="deleting"), moving) == "destroy"


def test_guest_of_a_returned_instance_is_kept_after_an_evacuation():
    finished = migration(kind="evacuate", status="finished", source_host="h1", target_host="h2")
    assert fate(status(status="ACTIVE", host="h1"), finished) == "keep"


@pytest.mark.parametrize("kind", ["resize", "migrate", "live", "evacuate"])
def test_old_copy_is_destroyed_while_the_instance_moves_back(kind):
    left = migration(kind="evacuate", status="finished", source_host="h1", target_host="h2")
    back = migration(kind=kind, status="moving", source_host="h2", target_host="h1")
    assert fate(status(status="ACTIVE", host="h2"), left, back) == "destroy"


def test_migrations_of_other_instances_are_ignored():
    other = migration(kind="resize", status="moving", source_host="h1", instance_uuid=uuid_of("instance", 2))
    assert fate(status(status="ACTIVE", host="h2"), other) == "destroy"
