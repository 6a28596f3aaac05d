"""The run on many agents, small: what it finds is told, and nothing of it is wrong."""

import msgspec
import pytest

from bench.agents import Plan, run, to_text

pytestmark = pytest.mark.long

SMALL = Plan(agents=12, processes=2, instances=60, batch=20, clients=2, failing=0.2, kill_every_s=0.5)


@pytest.mark.parametrize("shuffle", [False, True])
def test_instances_on_agents_that_fail_and_die_all_end_and_are_told(tmp_path, shuffle):
    plan, shown = msgspec.structs.replace(SMALL, shuffle=shuffle), []
    found = run(plan, tmp_path, show=lambda done, of: shown.append((done, of)))
    assert found.problems == []
    assert f"shuffle_best_same_weighed_hosts = {str(shuffle).lower()}" in (tmp_path / "server.toml").read_text()
    assert sum(found.statuses.values()) == 60
    assert set(found.statuses) <= {"ACTIVE", "ERROR"}
    assert shown[-1] == (60, 60)
    assert len(found.latencies_s) == found.statuses["ACTIVE"] > 30
    text = to_text(plan, found)
    assert "12 in 2 processes" in text
    assert "audit          clean" in text


def test_agents_are_shared_out_among_processes():
    assert Plan(agents=10, processes=3).fleets == [3, 3, 4]
