"""The benchmark with many agents, at a small scale: its report, and no problems."""

import msgspec
import pytest

from bench.agents import Plan, run, to_text

pytestmark = pytest.mark.long

SMALL = Plan(agents=12, processes=2, instances=60, batch=20, clients=2, failing=0.2, kill_every_s=0.5)


@pytest.mark.parametrize("shuffle", [False, True])
def test_instances_on_failing_agents_all_end_and_are_reported(tmp_path, shuffle):
    plan, progress = msgspec.structs.replace(SMALL, shuffle=shuffle), []
    results = run(plan, tmp_path, show=lambda done, of: progress.append((done, of)))
    assert results.problems == []
    assert f"shuffle_best_same_weighed_hosts = {str(shuffle).lower()}" in (tmp_path / "server.toml").read_text()
    assert sum(results.statuses.values()) == 60
    assert set(results.statuses) <= {"ACTIVE", "ERROR"}
    assert progress[-1] == (60, 60)
    assert len(results.latencies_s) == results.statuses["ACTIVE"] > 30
    text = to_text(plan, results)
    assert "12 in 2 processes" in text
    assert "audit          clean" in text


def test_agents_are_spread_over_processes():
    assert Plan(agents=10, processes=3).fleets == [3, 3, 4]
