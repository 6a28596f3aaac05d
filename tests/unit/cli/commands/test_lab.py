import json

import pytest
from click.testing import CliRunner

from roost.cli.commands.lab import lab
from roost.errors import BadRequest, RoostError
from tests.unit.simulator.lab.gpu_files import NODES, PODS, write

EXPECTED = "workload,policy,seed,gpu_allocation_pct,fragmented_gpu_pct\npods,06-FGD,1,10.00,1.00\n"


@pytest.fixture
def files(tmp_path):
    """Return the small lists of nodes and pods."""
    return write(tmp_path, nodes=NODES, pods=PODS)


def fgd(*words):
    return CliRunner().invoke(lab, ["fgd", *map(str, words)])


def test_table_has_a_line_for_each_policy(files):
    result = fgd(*files, "--seeds", "1..2", "--placements", 1, "--jobs", 1)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "GPUs of the fleet at a load of 130 %: mean and standard deviation of each policy's runs"
    assert " ".join(lines[2].split()) == "workload policy runs allocated % sd unusable % sd refused largest"
    policies = ["random", "dotprod", "gpuclustering", "gpupacking", "bestfit", "fgd", "gpu_value"]
    assert [line.split()[:3] for line in lines[3:]] == [["pods", policy, "2"] for policy in policies]
    assert "lab: " in result.stderr


def test_published_results_plots_and_json(files, tmp_path):
    pytest.importorskip("matplotlib")
    (expected,) = write(tmp_path, expected=EXPECTED)
    words = [*files, "--policy", "fgd", "--seeds", "1,7", "--jobs", 1, "--results", tmp_path / "results"]
    text = fgd(*words, "--expected", expected, "--plot", tmp_path / "plots").stdout
    assert text.splitlines()[-1].split()[-3:] == ["0", "of", "1"]
    assert "deviation" in text
    names = ["pods-allocation.png", "pods-fragmentation.png", "pods-left.png"]
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == names
    (figures,) = json.loads(fgd(*words, "-o", "json").stdout)["figures"]
    assert (figures["policy"], figures["seeds"], figures["expected_runs"]) == ("fgd", [1, 7], 0)
    assert "(2 of 2 runs were finished earlier)" in fgd(*words).stdout


def test_results_of_other_conditions_are_kept_apart(files, tmp_path):
    nodes, _ = files
    header, *rows = PODS.splitlines()
    timed = "\n".join([f"{header},creation_time,deletion_time", *(f"{row},10,{40 + len(row)}" for row in rows)]) + "\n"
    first, second = write(tmp_path, first=timed, second=timed.replace(",500,", ",300,"))
    results = tmp_path / "results"
    words = [nodes, first, "--policy", "gpu_value", "--seeds", "1,2", "--jobs", 1, "--results", results]
    outputs = {}
    for options in ((), ("--departures",), ("--change-mix", second), ("--restart",), ("--departures", "--restart")):
        result = fgd(*words, *options)
        assert result.exit_code == 0, result.output
        assert "finished earlier" not in result.stdout
        assert "(2 of 2 runs were finished earlier)" in fgd(*words, *options).stdout
        outputs[options] = result.stdout
    assert len(list(results.iterdir())) == 10
    assert "(pods leave after their durations)" in outputs["--departures", "--restart"]
    assert "(the engine is closed half way, and opened again)" in outputs["--departures", "--restart"]
    assert "(from half of the load on, pods are those of second.csv)" in outputs["--change-mix", second]
    last = {options: text.splitlines()[-1] for options, text in outputs.items()}
    assert last[("--restart",)] == last[()] != last[("--departures",)]
    assert last["--departures", "--restart"] == last[("--departures",)]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--departures",), "column creation_time is missing"),
        (("--change-mix", "nodes.csv"), "column name is missing"),
        (("--departures", "--expected", "expected.csv"), "the published pods never leave, and are of one list"),
        (("--policy", "best"), "'best' is not one of"),
        (("--seeds", "x"), "seeds must be comma-separated integers, A..B, or one number N for 1 to N, got 'x'"),
        (("--seeds", "51..42"), "there must be 1..1,000 seeds, got 51..42"),
        (("--placements", 0), "0 is not in the range"),
        (("--results", "nodes.csv"), "nodes.csv: cannot be written: File exists"),
        (("--plot", "nodes.csv"), "nodes.csv: cannot be written: File exists"),
        (("--expected", "nodes.csv"), "column workload is missing"),
        (("--expected", "absent.csv"), "absent.csv: cannot be read: No such file or directory"),
        (("pods.csv",), "two workloads would both be called pods"),
        (("nodes.csv",), "column name is missing"),
    ],
)
def test_invalid_options_are_refused_in_one_sentence(tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    result = fgd("nodes.csv", "pods.csv", *words)
    assert result.stdout == ""
    error = result.exception
    if isinstance(error, RoostError):
        assert isinstance(error, BadRequest)
        assert sentence in str(error)
    else:
        assert result.exit_code == 2
        assert sentence in result.stderr
    assert not list(tmp_path.glob("*/*"))
