import json
import os
import signal
import subprocess
import time

import pytest

from roost.cli.replays.compare_policies import parse_seeds
from roost.errors import BadRequest
from tests.support.fleets.products import command, environ, roost
from tests.unit.simulator.comparisons import PACK, SPREAD
from tests.unit.simulator.traces.files import VMS, write

pytestmark = pytest.mark.long

GENERATED = ("replay", "--generate", "--host-count", 5, "--requests", 40)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the current folder, with two policies in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spread.toml").write_text(SPREAD)
    (tmp_path / "pack.toml").write_text(PACK)
    return tmp_path


def with_both_policies(*words):
    return (*words, "--config", "spread.toml", "--config", "pack.toml")


def without_progress(error):
    return [line for line in error.splitlines() if not line.startswith("replay: ")]


def test_two_policies_give_one_table_json_and_plots(folder):
    words = ("--seeds", 2, "--jobs", 2, "--json", "all.json", "--plot", "plots")
    result = roost(*with_both_policies(*GENERATED), *words, cwd=folder)
    assert (result.returncode, without_progress(result.stderr)) == (0, [])
    assert result.stdout.startswith("comparison of generated-mixed-5x40\n")
    assert "\n  (mean and minimum..maximum of 2 seeds: 1, 2)\n" in result.stdout
    assert "spread" in result.stdout
    assert "pack" in result.stdout
    comparison = json.loads((folder / "all.json").read_text())
    assert (comparison["version"], comparison["seeds"], comparison["jobs"]) == (1, [1, 2], 2)
    assert [(policy["name"], len(policy["reports"])) for policy in comparison["policies"]] == [
        ("spread", 2),
        ("pack", 2),
    ]
    placed = next(figure for figure in comparison["figures"] if figure["name"] == "placed")
    assert placed["better"] == "more"
    assert placed["spreads"][0]["least"] <= placed["spreads"][0]["mean"] <= placed["spreads"][0]["most"]
    assert len(list((folder / "plots").glob("*.png"))) == 5
    assert "replay: wrote 5 plots to plots" in result.stderr


def test_trace_is_compared_unshuffled_unless_seeds_are_given(run, folder):
    trace = with_both_policies("replay", *write(folder, vms=VMS), "--hosts", "2x200c/28m", "--jobs", 1, "--json", "-")
    unshuffled = json.loads(run(*trace)[1])
    assert unshuffled["seeds"] == [None]
    shuffled = json.loads(run(*trace, "--seeds", "5")[1])
    assert shuffled["seeds"] == [1, 2, 3, 4, 5]
    assert shuffled["policies"][0]["reports"][3]["notes"][-1] == "hosts are in an order drawn from seed 4"


def test_single_policy_over_seeds_is_named_settings(run):
    _, output, _ = run(*GENERATED, "--seeds", "3,5", "--jobs", 1, "--json", "-")
    assert [policy["name"] for policy in json.loads(output)["policies"]] == ["settings"]


def test_single_replay_can_be_plotted(run, folder):
    _, output, _ = run(*GENERATED, "--memory", "--plot", "plots")
    assert output.startswith("replay of generated-mixed-5x40-seed1\n")
    assert len(list((folder / "plots").glob("*.png"))) == 5


def test_results_of_earlier_runs_are_reused(run, folder):
    words = (*with_both_policies(*GENERATED), "--results", "kept", "--jobs", 1)
    assert "finished earlier" not in run(*words)[1]
    assert "(2 of 4 runs were finished earlier)" in run(*words, "--seeds", "1,2")[1]
    next((folder / "kept").iterdir()).write_text("else")
    code, _, error = run(*words, "--seeds", "1,2")
    assert (code, len(without_progress(error))) == (2, 1)
    assert "move it away, or name another folder" in error


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--jobs", 2), 2, "--jobs needs several --config, --seeds or --results"),
        (("--seeds", "a"), 2, "seeds must be comma-separated integers, A..B, or one number N for 1 to N, got 'a'"),
        (("--seeds", "1", "--seed", "2"), 2, "--seed and --seeds cannot be combined"),
        (("--config", "pack.toml", "--config", "./pack.toml"), 2, "a settings file is repeated"),
        (("--config", "pack.toml", "--config", "absent.toml"), 4, "--config: absent.toml does not exist"),
        (("--seeds", "1", "--results", "pack.toml"), 2, "pack.toml: cannot be written: File exists"),
        (("--seeds", "1", "--plot", "pack.toml"), 2, "pack.toml: cannot be written: File exists"),
        (("--seeds", "1", "--chunk", 0), 2, "a chunk must be 1 act or more, got 0"),
    ],
)
def test_invalid_options_are_refused_in_one_sentence(run, words, code, sentence):
    exit_code, output, error = run(*GENERATED, *words)
    assert (exit_code, len(without_progress(error)), output) == (code, 1, "")
    assert sentence in error


def test_seeds_are_a_list_or_a_count():
    assert parse_seeds("4") == (1, 2, 3, 4)
    assert parse_seeds("0,9") == (0, 9)
    assert parse_seeds("42..44") == (42, 43, 44)
    assert parse_seeds("0..0") == (0,)
    for text in ("", "0", "1,,2", "1,1", "-1", "1001", "1, 2", "3..2", "1..2..3", "1..9999", "1..2,5"):
        with pytest.raises(BadRequest):
            parse_seeds(text)


@pytest.mark.parametrize("target", ["the program", "all, as a terminal does"])
def test_interrupt_stops_the_workers_and_keeps_finished_results(folder, target):
    words = (
        *with_both_policies("replay", "--generate", "--host-count", 20, "--requests", 400, "--results", "kept"),
        "--seeds",
        2,
    )
    with subprocess.Popen(
        command(*words, "--jobs", 2),
        cwd=folder,
        env=environ(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        wait_until(lambda: list(folder.glob("kept/*.json")))
        (os.kill if target == "the program" else os.killpg)(process.pid, signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "".join(line for line in errors.splitlines() if not line.startswith("replay: ")) == ""
    wait_until(lambda: not is_alive(process.pid))
    finished = {path.name: path.stat().st_mtime_ns for path in folder.glob("kept/*.json")}
    assert 1 <= len(finished) < 4
    result = roost(*words, "--jobs", 2, cwd=folder)
    assert f"({len(finished)} of 4 runs were finished earlier)" in result.stdout
    later = {path.name: path.stat().st_mtime_ns for path in folder.glob("kept/*.json")}
    assert len(later) == 4
    assert {name: later[name] for name in finished} == finished


def is_alive(group):
    """Return whether any process of a group is alive."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition, *, seconds=60):
    """Wait until a condition holds."""
    deadline_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
