from itertools import product

import pytest

from roost.model.names import uuid_text
from roost.model.work.operation import STATUSES, USER_OPERATIONS, may_begin
from tests.support.conductors.work_rows import status

# The operations allowed in each status, written out independently of the table in the model.
ALLOWED = {
    "BUILD": {"delete"},
    "ACTIVE": {"delete", "stop", "reboot", "resize", "migrate", "live_migrate", "evacuate", "rebuild", "shelve"},
    "SHUTOFF": {"delete", "start", "resize", "migrate", "evacuate", "rebuild", "shelve"},
    "VERIFY_RESIZE": {"delete", "confirm", "revert"},
    "SHELVED": {"delete", "offload", "unshelve"},
    "SHELVED_OFFLOADED": {"delete", "unshelve"},
    "ERROR": {"delete", "evacuate", "rebuild", "reset"},
    "DELETED": set(),
}


@pytest.mark.parametrize(("kind", "state"), list(product(USER_OPERATIONS, STATUSES)))
def test_operation_begins_only_in_its_allowed_statuses(kind, state):
    refusal = may_begin(kind, status(status=state, host="h1", task=""))
    assert (refusal == "") is (kind in ALLOWED[state])
    busy = may_begin(kind, status(status=state, host="h1", task="resizing", operation_id=7))
    assert (busy == "") is (kind == "delete" and state != "DELETED")
    assert may_begin(kind, status(status=state, host="h1", task="deleting", operation_id=7))
    nowhere = may_begin(kind, status(status=state, task=""))
    assert (nowhere == "") is (kind in ALLOWED[state] and kind not in {"evacuate", "rebuild", "reset"})


def test_refusal_names_the_instance_and_the_obstacle():
    name = "the instance " + uuid_text(status().uuid)
    assert may_begin("resize", status(status="ACTIVE", operation_id=3, task="spawning")) == (
        f"{name} cannot resize now: its task is spawning"
    )
    assert may_begin("live_migrate", status(status="SHUTOFF", task="")) == (
        f"{name} cannot live-migrate in status SHUTOFF: it has to be in ACTIVE; possible now: "
        "delete, start, resize, migrate, shelve"
    )
    assert may_begin("start", status(status="DELETED", task="")) == f"{name} is deleted"
    assert may_begin("rebuild", status(status="ERROR", task="")) == f"{name} cannot rebuild: it is on no host"
