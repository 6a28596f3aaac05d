import json

import pytest
from click.testing import CliRunner

from roost.cli.commands.lab import lab
from roost.errors import BadRequest, RoostError
from tests.unit.simulator.lab.compact_files import TRACE
from tests.unit.simulator.lab.gpu_files import write


def compact(*words):
    return CliRunner().invoke(lab, ["compact", *map(str, words)])


@pytest.fixture
def path(tmp_path):
    """Return a small trace."""
    return write(tmp_path, vms=TRACE)[0]


def test_report_names_the_hosts_to_buy(path, tmp_path):
    words = [path, "--host", "8c/10m", "--jobs", 1, "--policy", "first_fit", "--policy", "worst_fit"]
    result = compact(*words, "--results", tmp_path / "results", "--allow", 0)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Hosts for vms: 5 requests"
    assert "If no request may be refused: first_fit needs 3 hosts, as many as worst_fit." in lines
    again = json.loads(compact(*words, "--results", tmp_path / "results", "--allow", 0, "--json").stdout)
    assert [(each["policy"], each["least"][0]["host_count"]) for each in again["policies"]] == [
        ("first_fit", 3),
        ("worst_fit", 3),
    ]
    assert again["bound"] == 2


def test_refused_requests_need_fewer_hosts(path):
    result = compact(path, "--host", "8c/10m", "--jobs", 1, "--policy", "room", "--allow", 0, "--allow", 0.5, "--json")
    (room,) = json.loads(result.stdout)["policies"]
    assert [least["host_count"] for least in room["least"]] == [3, 2]


def test_a_generated_trace_has_its_own_hosts():
    words = ["--generate", "few", "--requests", 40, "--own-hosts", 12, "--jobs", 1, "--policy", "best_fit", "--json"]
    result = compact(*words)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["hosts"] == []
    assert 1 <= report["policies"][0]["least"][0]["host_count"] <= 12


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "name the files of a trace"),
        (
            ("vms.csv",),
            "a CoSpot trace has no hosts: describe them by --hosts COUNTxCORESc/RAMm or, for roost lab compact",
        ),
        (("vms.csv", "--host", "8"), "a host must be CORESc/RAMm"),
        (("vms.csv", "--generate", "few"), "not both"),
        (("--generate", "few", "--host", "8c/10m"), "leave --host out"),
        (("vms.csv", "--host", "8c/10m", "--policy", "best"), "'best' is not one of"),
        (("vms.csv", "--host", "8c/10m", "--allow", 1), "is not in the range 0<=x<1"),
        (("absent.csv", "--host", "8c/10m"), "absent.csv: cannot be read"),
    ],
)
def test_invalid_options_are_refused_in_one_sentence(path, monkeypatch, words, sentence):
    monkeypatch.chdir(path.parent)
    result = compact(*words)
    assert result.stdout == ""
    error = result.exception
    if isinstance(error, RoostError):
        assert isinstance(error, BadRequest)
        assert sentence in str(error)
    else:
        assert result.exit_code == 2
        assert sentence in result.stderr
