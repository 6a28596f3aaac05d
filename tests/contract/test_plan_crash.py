"""After a crash at any commit of an applied plan, the next server continues: no instance is lost or doubled."""

import pytest

from roost.conductor.intake import accept_plan
from roost.model.work.change_memory import AppliedMove, PlanApplication
from tests.contract.batch_runs import NAMES, BatchRun
from tests.contract.commit_failures import stride
from tests.support.fleets.named_uuids import uuid_named

pytestmark = pytest.mark.long


def accept(server, uuid, source, target):
    """Apply a plan that moves all instances, two at a time; the last move needs the first one."""
    moves = tuple(
        AppliedMove(
            number=number,
            instance=uuid_named(name),
            source=source,
            target=target,
            after=(1,) if number == len(NAMES) else (),
        )
        for number, name in enumerate(NAMES, start=1)
    )
    statuses = accept_plan.find_statuses(server.reader, moves, may_move=lambda _status: True)
    return server.run(
        lambda current: (
            server.reader.operation_by_uuid(uuid)
            or accept_plan.apply(
                current,
                PlanApplication(moves=moves, at_once=2, per_host=2, per_group=2),
                statuses,
                documents=current.store.document,
                operation_uuid=uuid,
                now_s=server.clock.now_s(),
            )
        )
    )


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_applied_plan_survives_a_crash_at_every_commit(world, is_made):
    run = BatchRun(world, accept)
    run.prepare()
    failures = run.fail_at_each_commit(is_made=is_made)
    assert failures * stride(world) >= 15, failures
