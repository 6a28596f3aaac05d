from pathlib import Path

import msgspec
import pytest

from roost.errors import BadFile, BadRequest, RoostError
from roost.simulator import workers
from roost.simulator.compare import build_figures, compare, policy_names
from roost.simulator.runs import execute, trace_source
from roost.simulator.workload import Options
from tests.unit.simulator.comparisons import broken_policy, generated, policies, with_figures, without_durations
from tests.unit.simulator.traces.files import VMS, write

pytestmark = pytest.mark.long


def figure(name, *kept, is_alone=True):
    return next(each for each in build_figures(kept, is_alone=is_alone) if each.name == name)


@pytest.fixture
def carried(monkeypatch):
    """Remember the runs that are carried out in this process."""
    done = []

    def remember(run, progress=None):
        execute(run, progress)
        done.append(str(run))

    monkeypatch.setattr(workers, "execute", remember)
    return done


def test_a_figure_has_its_mean_and_its_spread_over_the_seeds():
    spread = figure("placed", with_figures(8_000, 8_010, 8_050)).spreads[0]
    assert (spread.mean, spread.least, spread.most) == (8_020, 8_000, 8_050)


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ([8_000], [8_001], "b"),
        ([8_000], [8_000], None),
        ([8_000, 8_010], [7_000, 7_999], "a"),
        ([8_000, 8_010], [7_000, 8_000], None),  # The worst of one is no better than the best of the other.
    ],
)
def test_the_best_is_marked_only_where_every_seed_says_so(first, second, best):
    kept = with_figures(*first), with_figures(*second, name="b")
    assert figure("placed", *kept).best == figure("refused", *kept).best == best


def test_nobody_is_best_alone_or_at_what_is_neither_good_nor_bad():
    assert figure("placed", with_figures(1)).best is None
    kept = with_figures(1, instances_alive=1), with_figures(1, name="b", instances_alive=2)
    assert figure("instances alive at the end", *kept).best is None


def test_durations_are_judged_only_where_nothing_disturbed_them_and_several_agree():
    once = with_figures(1, decision_us_p50=1.0), with_figures(1, name="b", decision_us_p50=2.0)
    twice = with_figures(1, 1, decision_us_p50=1.0), with_figures(1, 1, name="b", decision_us_p50=2.0)
    assert figure("decision p50, µs", *once).best is None
    assert figure("decision p50, µs", *twice, is_alone=False).best is None
    assert figure("decision p50, µs", *twice).best == "a"


def test_a_figure_that_a_run_lacks_is_left_out():
    names = [each.name for each in build_figures([with_figures(1, gpu_fragmentation=None)], is_alone=True)]
    assert "GPU fragmentation" not in names
    assert "hosts empty at the end" not in names  # REPORT has none.
    assert "PGPU, peak" in names
    assert "PGPU, stranded of the free" not in names


def test_policies_are_called_by_their_files():
    assert policy_names([Path("a/pack.toml"), Path("b/pack.toml"), Path("b/spread.toml")]) == [
        "a/pack",
        "b/pack",
        "spread",
    ]
    with pytest.raises(BadRequest, match="both be called a/pack"):
        policy_names([Path("x/a/pack.toml"), Path("y/a/pack.toml")])


def test_side_by_side_and_one_after_the_other_give_the_same():
    compared = [compare(generated(), policies(), seeds=(1, 2), jobs=jobs) for jobs in (1, 3)]
    first, second = (without_durations(comparison) for comparison in compared)
    assert first == second
    assert [len(policy.reports) for policy in compared[0].policies] == [2, 2]
    assert {report.workload for policy in compared[0].policies for report in policy.reports} == {
        "generated-few-5x40-seed1",
        "generated-few-5x40-seed2",
    }


def test_a_comparison_goes_on_where_it_ended(tmp_path, carried):
    def again(seeds, source=None):
        carried.clear()
        found = compare(source or generated(), policies(), seeds=seeds, results=tmp_path / "results")
        return found.runs_found, list(carried)

    assert again((1,)) == (0, ["spread, seed 1", "pack, seed 1"])
    assert again((1,)) == (2, [])
    assert again((1, 2)) == (2, ["spread, seed 2", "pack, seed 2"])
    first, *_ = sorted((tmp_path / "results").iterdir())
    first.unlink()
    found, done = again((1, 2))
    assert (found, len(done)) == (3, 1)
    assert again((1, 2), generated(requests=41))[0] == 0


def test_a_resumed_comparison_equals_one_in_one_go(tmp_path):
    compare(generated(), policies()[:1], seeds=(2,), results=tmp_path)
    resumed = compare(generated(), policies(), seeds=(1, 2), results=tmp_path)
    assert resumed.runs_found == 1
    assert without_durations(resumed) == without_durations(compare(generated(), policies(), seeds=(1, 2)))


def test_policies_that_differ_in_their_names_alone_share_their_runs(carried):
    spread, _ = policies()
    same = msgspec.structs.replace(spread, name="also spread")
    found = compare(generated(), [spread, same], seeds=(1,))
    assert carried == ["also spread, seed 1"]
    assert found.policies[0].reports == found.policies[1].reports


def test_a_corrupt_result_ends_the_comparison_before_any_run(tmp_path, carried):
    compare(generated(), policies(), seeds=(1,), results=tmp_path)
    carried.clear()
    victim = min(tmp_path.iterdir())
    victim.write_text("{")
    with pytest.raises(BadFile, match="is not the result of"):
        compare(generated(), policies(), seeds=(1, 2), results=tmp_path)
    assert carried == []
    assert victim.read_text() == "{"


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_error_of_a_run_is_the_same_sentence_wherever_it_ran(tmp_path, jobs):
    source = trace_source(
        write(tmp_path, vms=VMS + "10,71,-8,7,0,2,3\n"), options=Options(hosts=("2x200c/28m",)), chunk=64
    )
    with pytest.raises(BadFile) as caught:
        compare(source, policies(), seeds=(1,), jobs=jobs, results=tmp_path / "results")
    assert str(caught.value) == f"{tmp_path / 'vms.csv'}:5: column cores: must be 1..2147483647, got -8"
    assert caught.value.exit_code == 2
    assert list((tmp_path / "results").iterdir()) == []


def test_a_worker_that_dies_ends_the_comparison_and_leaves_what_is_finished(tmp_path, monkeypatch):
    (tmp_path / "deadly.py").write_text("import os\nos._exit(9)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    spread, _ = policies()
    results = tmp_path / "results"
    compare(generated(), [spread], seeds=(1,), results=results)
    with pytest.raises(RoostError, match=r"the run of broken, seed 1 ended without a result \(its process with 9\)"):
        compare(generated(), [spread, broken_policy("deadly")], seeds=(1, 2), jobs=2, results=results)
    assert len(list(results.glob("*.json"))) >= 1
    assert compare(generated(), [spread], seeds=(1,), results=results).runs_found == 1


def test_what_cannot_be_compared_is_refused():
    spread, pack = policies()
    for wrong, seeds, jobs in (
        ([spread, spread], (1,), 1),
        ([spread], (1, 1), 1),
        ([], (1,), 1),
        ([spread], (), 1),
        ([spread, pack], (1,), 0),
    ):
        with pytest.raises(BadRequest):
            compare(generated(), wrong, seeds=seeds, jobs=jobs)


def test_databases_are_kept_where_a_folder_is_named(tmp_path):
    compare(generated(), policies(), seeds=(1, 2), data=tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/roost.db")) == [
        "pack-seed1/roost.db",
        "pack-seed2/roost.db",
        "spread-seed1/roost.db",
        "spread-seed2/roost.db",
    ]


def test_progress_ends_with_all_acts():
    for jobs in (1, 2):
        told = []
        compare(generated(), policies(), seeds=(1,), jobs=jobs, progress=lambda *each, told=told: told.append(each))
        assert told[-1][0] == told[-1][1] >= 80
