"""After a crash at any commit of a drain, the next server continues: no instance is lost or doubled."""

import pytest

from roost.conductor.intake import accept_drain
from tests.contract.batch_runs import BatchRun
from tests.contract.commit_failures import stride

pytestmark = pytest.mark.long


def accept(server, uuid, source, _target):
    return server.run(
        lambda current: accept_drain.drain(
            current,
            server.reader,
            source,
            at_once=2,
            is_disabling=False,
            now_s=server.clock.now_s(),
            operation_uuid=uuid,
        )
    )


@pytest.mark.parametrize("is_made", [False, True], ids=["before", "after"])
def test_drain_survives_a_crash_at_every_commit(world, is_made):
    run = BatchRun(world, accept)
    run.prepare()
    failures = run.fail_at_each_commit(is_made=is_made)
    assert failures * stride(world) >= 15, failures
