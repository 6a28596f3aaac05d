import pytest

from roost.conductor.operation.reconcile import reconcile
from tests.contract.stores import uuid_of
from tests.support.conductors.work_rows import migration, status

ONE = uuid_of("instance", 1)
STATUSES = ["BUILD", "ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SHELVED_OFFLOADED", "ERROR", "DELETED"]


def fate(row, *moves, host="h1"):
    found = reconcile(host, [ONE], statuses={} if row is None else {ONE: row}, migrations=moves)
    return next(name for name in ("keep", "hold", "destroy") if ONE in getattr(found, name))


@pytest.mark.parametrize("state", STATUSES)
@pytest.mark.parametrize("host", ["H1", "h2", ""])
def test_what_is_elsewhere_or_no_more_goes_and_nothing_else(state, host):
    if state == "DELETED":
        expected = "destroy"
    elif host == "":
        expected = "keep" if state == "BUILD" else "destroy"
    else:
        expected = "keep" if host == "H1" else "destroy"
    assert fate(status(status=state, host=host, task="")) == expected


def test_an_instance_that_nobody_knows_of_stays():
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
def test_a_move_keeps_what_it_may_still_need(kind, state, source, target, expected):
    row = status(status="ACTIVE", host="h2")
    assert fate(row, migration(kind=kind, status=state, source_host=source, target_host=target)) == expected


def test_a_host_that_is_evacuated_holds_what_it_has_until_that_ends():
    home = status(status="ACTIVE", host="h1")
    moving = migration(kind="evacuate", status="moving", source_host="h1", target_host="h2")
    assert fate(home, moving) == "hold"
    assert fate(home, migration(kind="evacuate", status="failed", source_host="h1")) == "keep"
    assert not reconcile("h1", [ONE], statuses={ONE: home}, migrations=[moving]).is_clean


def test_an_instance_that_came_back_stays_whatever_was_left_of_it_before():
    finished = migration(kind="evacuate", status="finished", source_host="h1", target_host="h2")
    assert fate(status(status="ACTIVE", host="h1"), finished) == "keep"


@pytest.mark.parametrize("kind", ["resize", "migrate", "live", "evacuate"])
def test_a_copy_that_an_instance_left_goes_also_while_it_moves_back_to_that_host(kind):
    left = migration(kind="evacuate", status="finished", source_host="h1", target_host="h2")
    back = migration(kind=kind, status="moving", source_host="h2", target_host="h1")
    assert fate(status(status="ACTIVE", host="h2"), left, back) == "destroy"


def test_migrations_of_others_do_not_matter():
    other = migration(kind="resize", status="moving", source_host="h1", instance_uuid=uuid_of("instance", 2))
    assert fate(status(status="ACTIVE", host="h2"), other) == "destroy"
