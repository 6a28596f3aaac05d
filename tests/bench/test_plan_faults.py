"""The run of plans under faults, at a small scale: processes are killed, orders fail and hang, and all work settles."""

import pytest

from bench.plan_faults.__main__ import to_text
from bench.plan_faults.run import Options, run

pytestmark = pytest.mark.long

SMALL = Options(
    agents=12,
    processes=2,
    instances=36,
    at_once=4,
    per_host=2,
    moves=8,
    drains=1,
    rounds=1,
    kills=3,  # a server, an agent and a conductor
    kill_from_s=2.0,
    kill_to_s=3.0,
    move_s=0.2,
    hang_s=4.0,
)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_plans_under_faults_settle_within_their_limits(kind, request, tmp_path):
    database = request.getfixturevalue("postgres_url") if kind == "postgresql" else ""
    progress = []
    found = run(SMALL, tmp_path, database=database, show=progress.append)
    assert found.problems == []
    assert progress[:2] == ["12 agents are up", "36 instances are built"]
    assert sum(found.kills.values()) >= 3
    assert min(found.kills.values()) > 0
    assert sum(found.instances.values()) == 36
    plans = {line.name: line for line in found.lines}
    assert plans["consolidate 1"].moves == sum(
        (plans["consolidate 1"].done, plans["consolidate 1"].failed, plans["consolidate 1"].skipped)
    )
    assert sum(line.done for line in found.lines) > 0
    # Both watches saw the moves.
    assert any(line.seen for line in found.lines)
    assert any(line.recorded for line in found.lines)
    assert "the audit is clean" in to_text(found)
