from pathlib import Path

import msgspec
import pytest

from roost.errors import BadFile, BadRequest, RoostError
from roost.simulator.compare import build_figures, compare, policy_names
from roost.simulator.runs import execute, trace_source
from roost.simulator.workload import Options
from tests.unit.simulator.comparisons import broken_policy, generated_source, policies, policy_runs, without_durations
from tests.unit.simulator.traces.files import VMS, write

pytestmark = pytest.mark.long


def figure(name, *policies_with_runs, is_sequential=True):
    return next(each for each in build_figures(policies_with_runs, is_sequential=is_sequential) if each.name == name)


@pytest.fixture
def executed(monkeypatch):
    """Return the list of runs that this process executes."""
    runs = []

    def record(run, progress=None):
        execute(run, progress)
        runs.append(str(run))

    monkeypatch.setattr("roost.simulator.compare.execute", record)
    return runs


def test_figure_has_mean_and_spread_over_the_seeds():
    spread = figure("placed", policy_runs(8_000, 8_010, 8_050)).spreads[0]
    assert (spread.mean, spread.least, spread.most) == (8_020, 8_000, 8_050)


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ([8_000], [8_001], "b"),
        ([8_000], [8_000], None),
        ([8_000, 8_010], [7_000, 7_999], "a"),
        ([8_000, 8_010], [7_000, 8_000], None),  # The worst of one equals the best of the other.
    ],
)
def test_best_policy_is_marked_only_if_better_in_every_seed(first, second, best):
    policies_with_runs = policy_runs(*first), policy_runs(*second, name="b")
    assert figure("placed", *policies_with_runs).best == figure("refused", *policies_with_runs).best == best


def test_no_policy_is_best_alone_or_at_a_neutral_figure():
    assert figure("placed", policy_runs(1)).best is None
    policies_with_runs = policy_runs(1, instances_alive=1), policy_runs(1, name="b", instances_alive=2)
    assert figure("instances alive at the end", *policies_with_runs).best is None


def test_durations_are_compared_only_for_undisturbed_repeated_runs():
    once = policy_runs(1, decision_us_p50=1.0), policy_runs(1, name="b", decision_us_p50=2.0)
    twice = policy_runs(1, 1, decision_us_p50=1.0), policy_runs(1, 1, name="b", decision_us_p50=2.0)
    assert figure("decision p50, µs", *once).best is None
    assert figure("decision p50, µs", *twice, is_sequential=False).best is None
    assert figure("decision p50, µs", *twice).best == "a"


def test_figure_missing_from_a_run_is_left_out():
    names = [each.name for each in build_figures([policy_runs(1, gpu_fragmentation=None)], is_sequential=True)]
    assert "GPU fragmentation" not in names
    assert "hosts empty at the end" not in names  # REPORT has none.
    assert "PGPU, peak" in names
    assert "PGPU, stranded of the free" not in names


def test_policies_are_named_after_their_files():
    assert policy_names([Path("a/pack.toml"), Path("b/pack.toml"), Path("b/spread.toml")]) == [
        "a/pack",
        "b/pack",
        "spread",
    ]
    with pytest.raises(BadRequest, match="both be called a/pack"):
        policy_names([Path("x/a/pack.toml"), Path("y/a/pack.toml")])


def test_parallel_and_sequential_runs_give_the_same_comparison():
    comparisons = [compare(generated_source(), policies(), seeds=(1, 2), jobs=jobs) for jobs in (1, 3)]
    first, second = (without_durations(comparison) for comparison in comparisons)
    assert first == second
    assert [len(policy.reports) for policy in comparisons[0].policies] == [2, 2]
    assert {report.workload for policy in comparisons[0].policies for report in policy.reports} == {
        "generated-few-5x40-seed1",
        "generated-few-5x40-seed2",
    }


def test_comparison_resumes_where_it_ended(tmp_path, executed):
    def rerun(seeds, source=None):
        executed.clear()
        comparison = compare(source or generated_source(), policies(), seeds=seeds, results=tmp_path / "results")
        return comparison.runs_found, list(executed)

    assert rerun((1,)) == (0, ["spread, seed 1", "pack, seed 1"])
    assert rerun((1,)) == (2, [])
    assert rerun((1, 2)) == (2, ["spread, seed 2", "pack, seed 2"])
    first, *_ = sorted((tmp_path / "results").iterdir())
    first.unlink()
    reused_count, runs = rerun((1, 2))
    assert (reused_count, len(runs)) == (3, 1)
    assert rerun((1, 2), generated_source(requests=41))[0] == 0


def test_resumed_comparison_equals_an_uninterrupted_one(tmp_path):
    compare(generated_source(), policies()[:1], seeds=(2,), results=tmp_path)
    resumed = compare(generated_source(), policies(), seeds=(1, 2), results=tmp_path)
    assert resumed.runs_found == 1
    assert without_durations(resumed) == without_durations(compare(generated_source(), policies(), seeds=(1, 2)))


def test_policies_that_differ_only_in_name_share_runs(executed):
    spread, _ = policies()
    same = msgspec.structs.replace(spread, name="also spread")
    comparison = compare(generated_source(), [spread, same], seeds=(1,))
    assert executed == ["also spread, seed 1"]
    assert comparison.policies[0].reports == comparison.policies[1].reports


def test_a_corrupt_result_ends_the_comparison_before_any_run(tmp_path, executed):
    compare(generated_source(), policies(), seeds=(1,), results=tmp_path)
    executed.clear()
    victim = min(tmp_path.iterdir())
    victim.write_text("{")
    with pytest.raises(BadFile, match="is not the result of"):
        compare(generated_source(), policies(), seeds=(1, 2), results=tmp_path)
    assert executed == []
    assert victim.read_text() == "{"


@pytest.mark.parametrize("jobs", [1, 2])
def test_run_error_is_the_same_in_this_process_and_in_a_worker(tmp_path, jobs):
    source = trace_source(
        write(tmp_path, vms=VMS + "10,71,-8,7,0,2,3\n"), options=Options(hosts=("2x200c/28m",)), chunk=64
    )
    with pytest.raises(BadFile) as caught:
        compare(source, policies(), seeds=(1,), jobs=jobs, results=tmp_path / "results")
    assert str(caught.value) == f"{tmp_path / 'vms.csv'}:5: column cores: must be 1..2147483647, got -8"
    assert caught.value.exit_code == 2
    assert list((tmp_path / "results").iterdir()) == []


def test_dead_worker_ends_the_comparison_and_keeps_finished_runs(tmp_path, monkeypatch):
    (tmp_path / "deadly.py").write_text("import os\nos._exit(9)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spread, _ = policies()
    results = tmp_path / "results"
    compare(generated_source(), [spread], seeds=(1,), results=results)
    with pytest.raises(
        RoostError, match=r"the run of broken, seed 1 ended without a result: its process exited with code 9"
    ):
        compare(generated_source(), [spread, broken_policy("deadly")], seeds=(1, 2), jobs=2, results=results)
    assert len(list(results.glob("*.json"))) >= 1
    assert compare(generated_source(), [spread], seeds=(1,), results=results).runs_found == 1


def test_invalid_comparison_is_refused():
    spread, pack = policies()
    for wrong, seeds, jobs in (
        ([spread, spread], (1,), 1),
        ([spread], (1, 1), 1),
        ([], (1,), 1),
        ([spread], (), 1),
        ([spread, pack], (1,), 0),
    ):
        with pytest.raises(BadRequest):
            compare(generated_source(), wrong, seeds=seeds, jobs=jobs)


def test_databases_are_kept_in_the_given_folder(tmp_path):
    compare(generated_source(), policies(), seeds=(1, 2), data=tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/roost.db")) == [
        "pack-seed1/roost.db",
        "pack-seed2/roost.db",
        "spread-seed1/roost.db",
        "spread-seed2/roost.db",
    ]


def test_progress_ends_with_all_requests():
    for jobs in (1, 2):
        calls = []
        compare(
            generated_source(),
            policies(),
            seeds=(1,),
            jobs=jobs,
            progress=lambda *each, calls=calls: calls.append(each),
        )
        assert calls[-1] == (80, 80)
