import json
import os
import sys
from contextlib import contextmanager
from types import ModuleType

import pytest
from click.testing import CliRunner

from roost.cli.commands.replay import replay
from roost.errors import BadFile
from tests.unit.simulator.first_fit import FirstFit
from tests.unit.simulator.traces.files import NODES, PODS, VMS, write


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs the command with a first-fit scheduler in place of the product."""
    calls = []

    @contextmanager
    def open_roost(config, data, *, environ, is_scratch):
        assert environ is os.environ  # ROOST_CONFIG is read from it.
        calls.append((config, data, is_scratch, data is not None and data.is_dir()))
        yield FirstFit()

    app = ModuleType("roost.app")
    app.open_roost = open_roost
    monkeypatch.setitem(sys.modules, "roost.app", app)

    def run(*words):
        result = CliRunner().invoke(replay, [str(word) for word in words])
        result.calls = calls
        return result

    return run


def test_trace_gives_a_text_report(run, tmp_path):
    result = run(*write(tmp_path, nodes=NODES, pods=PODS), "--no-departures")
    assert result.exit_code == 0, result.output
    assert "replay of pods" in result.stdout
    assert "requests" in result.stdout
    assert "replay: 3 of 3" in result.stderr


def test_json_goes_to_a_file_or_replaces_the_text(run, tmp_path):
    words = [*write(tmp_path, vms=VMS), "--hosts", "2x200c/28m", "--limit", 2]
    assert json.loads(run(*words, "--json", "-").stdout)["requests"] == 2
    result = run(*words, "--json", tmp_path / "report.json")
    assert "replay of vms" in result.stdout
    assert json.loads((tmp_path / "report.json").read_text())["workload"] == "vms"


def test_a_generated_workload_needs_no_files(run):
    result = run("--generate", "--host-count", 5, "--requests", 30, "--seed", 9, "--json", "-")
    assert json.loads(result.stdout)["workload"] == "generated-mixed-5x30-seed9"


def test_database_is_temporary_unless_a_folder_is_given(run, tmp_path):
    generate = ("--generate", "--host-count", 1, "--requests", 1)
    run(*generate)
    run(*generate, "--memory")
    result = run(*generate, "--data", tmp_path, "--config", tmp_path / "roost.toml")
    temporary, memory, named = result.calls
    assert temporary[2:] == (True, True)
    assert not temporary[1].exists()
    assert memory == (None, None, True, False)
    assert named == (tmp_path / "roost.toml", tmp_path, True, True)


def test_only_explicit_settings_may_name_a_database_in_service(run, tmp_path):
    run("--generate", "--host-count", 1, "--requests", 1, "--config", tmp_path / "roost.toml")
    assert run("--generate", "--host-count", 1, "--requests", 1).exit_code == 0
    result = run("--generate", "--host-count", 1, "--requests", 1)
    assert [is_scratch for _, _, is_scratch, _ in result.calls] == [False, True, True]


def test_contradictory_options_are_refused(run, tmp_path):
    assert run("--generate", tmp_path / "nodes.csv").exit_code == 2
    assert run("--generate", "--memory", "--data", tmp_path).exit_code == 2


def test_malformed_trace_is_refused_before_a_database_is_opened(run, tmp_path):
    result = run(*write(tmp_path, nodes=NODES, pods=PODS + "x,-1,1,0,0,,,,0,1,\n"))
    assert isinstance(result.exception, BadFile)
    assert "pods.csv:5: column cpu_milli" in str(result.exception)
    assert result.calls == []
