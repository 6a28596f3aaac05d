"""Each seed injects faults. The invariants hold after each event, and the deployment becomes idle at the end."""

import os
import subprocess
import sys
from functools import cache

import pytest

from roost.conductor.steps import TABLES
from roost.model.writes import CLASS_MASK
from roost.simulator.cluster import __main__ as command
from roost.simulator.cluster.audit_rows import audit_tables
from roost.simulator.cluster.environment.rare_faults import HELD_SEEDS, LOSS_SEEDS, PLAN_SEEDS, RESTORE_SEEDS
from roost.simulator.cluster.environment.trouble import FaultRates
from roost.simulator.cluster.excuses import GUEST_LOST
from roost.simulator.cluster.seed_report import format_failure
from roost.simulator.cluster.seed_runs import run_seed, run_seeds, sum_results
from roost.simulator.cluster.simulation import Simulation
from tests.simulation.plants import PLANTS

pytestmark = pytest.mark.long

KINDS = ("build", "delete", "start", "stop")
# These seeds among the first thousand cover every end of every kind of operation.
SEEDS = (3, 17, 39, 62, 97, 108, 137, 159, 183, 222, 225, 235, 747, 806)
# Users apply plans in these.
PLANNED = PLAN_SEEDS[:4]
# Each kind must succeed at least this often. If the seeds no longer suffice, further seeds run.
DONE_LEAST, FURTHER = 3, range(600, 900)
# These kinds are never cancelled, and never fail for good.
NEVER_CANCELLED = frozenset({"build", "delete", "clean"})


@cache
def cached_run(seed):
    return run_seed(seed)


@pytest.mark.parametrize("seed", range(24))
def test_invariants_hold_for_basic_operations(seed):
    result = run_seed(seed, kinds=KINDS)
    assert not result.invariant, "\n".join(format_failure(result, kinds=",".join(KINDS)))


@pytest.mark.parametrize("seed", SEEDS)
def test_invariants_hold_for_all_kinds_of_operations(seed):
    result = cached_run(seed)
    assert not result.invariant, "\n".join(format_failure(result))


def test_instances_of_lost_guests_end_with_their_fault():
    results = [run_seed(seed) for seed in LOSS_SEEDS[:8]]
    assert [result.problem for result in results if result.invariant] == []
    total = sum_results(results)
    assert total.faults["bereft"] > 8
    assert total.excuses[GUEST_LOST] > 0
    assert total.transitions["sync wait DONE end"] > 0


@pytest.mark.parametrize("seed", sorted({*RESTORE_SEEDS, *HELD_SEEDS} - {*range(3_500)}))
def test_invariants_hold_in_single_seeds_with_a_restored_backup(seed):
    assert seed in command.parse_seeds(command._SEEDS)
    result = cached_run(seed)
    assert not result.invariant, "\n".join(format_failure(result))


def test_plans_are_applied_within_their_limits():
    results = [cached_run(seed) for seed in PLANNED]
    assert [result.problem for result in results if result.invariant] == []
    total = sum_results(results)
    assert min(total.outcomes[f"apply {end}"] for end in ("done", "failed", "cancelled")) > 0
    assert {name for name in total.transitions if name.startswith("apply ")} == {
        " ".join(each) for each in TABLES["apply"].transitions("apply")
    }


def test_plans_are_applied_in_their_seeds_or_if_their_kind_is_named():
    assert "apply" not in cached_run(SEEDS[0]).accepted
    assert run_seed(SEEDS[0], kinds=("build", "apply")).accepted["apply"] > 0


@pytest.mark.soak
def test_invariants_hold_with_a_thousand_seeds():
    total = sum_results(run_seeds(range(1_000), jobs=1))
    assert not total.failures, "\n".join(format_failure(total.failures[0]))


def test_seeds_cover_every_fault_and_every_end_of_every_kind():
    faults = set(FaultRates.__struct_fields__)
    ends = {f"{kind} failed" for kind in TABLES if kind != "clean"}
    ends |= {f"{kind} cancelled" for kind in TABLES if kind not in NEVER_CANCELLED}
    results = []
    for seed in (*SEEDS, *PLANNED, *FURTHER):
        results.append(cached_run(seed))
        total = sum_results(results)
        rare = {kind for kind in TABLES if total.outcomes.get(f"{kind} done", 0) < DONE_LEAST}
        missing = (rare, ends - total.outcomes.keys(), faults - total.faults.keys())
        if not any(missing):
            break
    assert not any(missing), missing


def used_stocks(world):
    return [key for key, stock in world.store.tables.stocks.rows.items() if stock.used and key & CLASS_MASK]


def test_audit_of_a_finished_run_finds_damage():
    runs = map(Simulation, SEEDS)
    world = next(run.world for run in runs if not run.run().invariant and used_stocks(run.world))
    tables, key = world.store.tables, used_stocks(world)[0]
    assert audit_tables(tables) == []
    tables.stocks.rows[key] = tables.stocks.rows[key].with_used(tables.stocks.rows[key].used - 1)
    assert [finding.check for finding in audit_tables(tables)] == ["used"]


def test_seed_gives_the_same_run_in_other_processes():
    script = "from roost.simulator.cluster.seed_runs import run_seed; print(run_seed(3).digest)"
    output = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": number},
            check=True,
            text=True,
            capture_output=True,
        ).stdout.strip()
        for number in ("1", "2")
    ]
    assert output == [run_seed(3).digest] * 2
    assert run_seed(4).digest != run_seed(3).digest


def test_broken_seed_is_reported_with_the_command_to_repeat_it(monkeypatch, capsys):
    PLANTS["missing_release"](monkeypatch)
    broken = next(seed for seed in range(24) if run_seed(seed, kinds=KINDS).invariant)
    assert command.main(["--seeds", f"{broken}", "--kinds", ",".join(KINDS)]) == 1
    output = capsys.readouterr().out
    result = run_seed(broken, kinds=KINDS)
    assert f"seed {broken}: after {result.virtual_s:.3f} virtual s, at event {result.events:,}" in output
    assert "every allocation has a living consumer" in output
    assert result.last[-1] in output
    assert f"make sim SEED={broken} KINDS=build,delete,start,stop" in output


def test_seed_runs_are_counted_in_a_summary(capsys):
    assert command.main(["--seeds", "0-1", "--kinds", ",".join(KINDS), "--jobs", "1"]) == 0
    output = capsys.readouterr()
    assert "2 seeds, 0 broke an invariant" in output.out
    assert "2 of 2 seeds, 0 broken" in output.err
