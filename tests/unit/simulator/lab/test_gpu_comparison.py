import pytest

from roost.errors import BadFile, BadRequest
from roost.simulator.lab.gpu_comparison import compare, read_expected
from roost.simulator.lab.gpu_experiment import RunResult
from roost.simulator.lab.gpu_runs import plan_runs, read_result, run_missing
from tests.unit.simulator.lab.gpu_files import NODES, PODS, write

HEADER = "workload,policy,seed,gpu_allocation_pct,fragmented_gpu_pct\n"


def result(allocated, unusable, refused=0):
    return RunResult(
        arrived=9,
        refused=refused,
        refused_largest=refused // 2,
        allocated_percent=allocated,
        unusable_percent=unusable,
        load=[130],
        allocated=[allocated],
        unusable=[unusable],
        left={},
    )


@pytest.fixture
def plan(tmp_path):
    """Return a function that plans runs on the small files."""
    nodes, pods = write(tmp_path, nodes=NODES, my_list_pods=PODS)

    def plan(*policies, seeds=(1, 2), placements=1, files=(pods,)):
        return plan_runs(
            nodes, files, policies=policies, seeds=seeds, placements=placements, results=tmp_path / "results"
        )

    return plan


def test_figures_are_means_and_deviations_from_published_results(plan, tmp_path):
    (path,) = write(tmp_path, expected=f"{HEADER}pods,06-FGD,1,95.00,4.00\npods,FGD,2,95.50,4.10\nother,x,1,1,1\n")
    runs = plan("fgd", "random", placements=2)
    assert [(run.policy, run.seed, run.placement) for run in runs] == [
        ("fgd", 1, 0),
        ("fgd", 2, 0),
        ("random", 1, 0),
        ("random", 1, 1),
        ("random", 2, 0),
        ("random", 2, 1),
    ]
    results = [result(95.0, 4.0, 3), result(95.51, 4.1, 5), *[result(80.0, 9.0)] * 4]
    table = compare(runs, results, expected=read_expected(path), runs_found=0)
    fgd, random = table.figures
    assert (fgd.workload, fgd.policy, fgd.seeds, fgd.runs) == ("pods", "fgd", [1, 2], 2)
    assert (fgd.expected_runs, fgd.exact_runs) == (2, 1)
    assert fgd.allocated_percent == pytest.approx(95.255)
    assert fgd.allocated_sd == pytest.approx(0.3606, abs=1e-4)
    assert fgd.allocated_deviation == pytest.approx(0.005)
    assert fgd.unusable_deviation == pytest.approx(0.0)
    assert (fgd.refused, fgd.refused_largest) == (4, 1.5)
    assert (random.expected_runs, random.allocated_deviation, random.is_random) == (0, None, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("workload,policy\na,b\n", "column seed is missing"),
        (f"{HEADER}pods,nothing,1,1,1\n", "has no result of random, dotprod"),
        (f"{HEADER}pods,fgd,1,1,1\npods,06-FGD,1,1,1\n", "1 is repeated for fgd on pods"),
        (f"{HEADER}pods,fgd,1,much,1\n", "must be a number, got 'much'"),
    ],
)
def test_invalid_published_results_are_refused(tmp_path, text, problem):
    (path,) = write(tmp_path, expected=text)
    with pytest.raises(BadFile) as caught:
        read_expected(path)
    assert problem in str(caught.value)


def test_finished_runs_are_not_run_again(plan):
    runs = plan("bestfit", "dotprod")
    results, found = run_missing(runs, jobs=1)
    assert found == 0
    stamps = [run.result_path.stat().st_mtime_ns for run in runs]
    runs[0].result_path.unlink()
    again, found = run_missing(runs, jobs=1)
    assert (again, found) == (results, 3)
    assert [run.result_path.stat().st_mtime_ns for run in runs][1:] == stamps[1:]


def test_another_file_in_place_of_a_result_is_refused(plan):
    (run,) = plan("fgd", seeds=(1,))
    run.result_path.parent.mkdir()
    run.result_path.write_text("{}")
    with pytest.raises(BadFile, match="is not the result of fgd on pods, seed 1: move it away"):
        read_result(run)


def test_changed_inputs_have_other_results_and_stop_a_planned_run(plan, tmp_path):
    (run,) = plan("fgd", seeds=(1,))
    write(tmp_path, my_list_pods=PODS.replace("500,512", "600,512"))
    with pytest.raises(BadFile, match="has changed since the runs began"):
        run_missing([run], jobs=1)
    assert plan("fgd", seeds=(1,))[0].fingerprint() != run.fingerprint()


def test_ambiguous_plans_are_refused(plan, tmp_path):
    with pytest.raises(BadRequest, match="policies must be different ones of random, dotprod"):
        plan("fgd", "fgd")
    with pytest.raises(BadRequest, match="policies must be different ones of"):
        plan("best")
    with pytest.raises(BadRequest, match="two workloads would both be called pods"):
        plan("fgd", files=write(tmp_path, pods=PODS, a_list_pods=PODS))
