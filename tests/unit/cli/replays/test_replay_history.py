"""``roost replay --from``, on a database file of its own."""

import json

import pytest
from click.testing import CliRunner

from roost.app import open_roost
from roost.cli.commands.replay import replay
from roost.errors import BadRequest, Unavailable
from roost.model.fleet import Departure
from roost.model.host import HostFacts
from tests.support.fleets.products import fleet, request
from tests.support.fleets.worlds import host, merge_fleets

PACK = "[filter_scheduler]\ncpu_weight_multiplier = -1.0\nram_weight_multiplier = -1.0\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a database: 14 requests for two processors of 24, and a departure."""
    folder = tmp_path_factory.mktemp("history")
    racked = host("racked", VCPU=8, MEMORY_MB=4096, facts=HostFacts(rack="r1"))
    with open_roost(None, folder) as roost:
        roost.install(merge_fleets(fleet(2, vcpus=8), racked))
        decisions = roost.work([request(2) for _ in range(13)])
        roost.work([Departure(instance_uuids=(decisions[0].picks[0].instance_uuid,)), request(2)])
    (folder / "pack.toml").write_text(PACK)
    return folder


def run(*words):
    return CliRunner().invoke(replay, [str(word) for word in words])


def compared(*words):
    result = run(*words, "-o", "json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_same_settings_repeat_the_record(folder):
    found = compared("--from", folder)
    (only,) = found["sets"]
    assert (found["requests"], found["departures"], found["different"]) == (14, 1, 0)
    assert found["recorded"] == {"granted": 13, "refused": 1, "instances": 13}
    assert (only["name"], only["granted"], only["differs_from_recorded"]) == ("settings", 13, 0)


def test_text_has_the_figures_and_a_command_for_each_decision(folder):
    result = run("--from", folder / "roost.db", "--config", folder / "pack.toml")
    assert result.exit_code == 0, (result.output, result.exception)
    lines = result.stdout.splitlines()
    assert lines[0] == "14 recorded requests and 1 departures, decided again"
    rows = {line[2:30].strip(): line.split() for line in lines if line.startswith("  ")}
    assert rows["granted"][-2:] == ["13", "13"]
    uuid = compared("--from", folder, "--config", folder / "pack.toml")["decisions"][0]["uuid"]
    assert lines[-1] == f"explain one: roost why {uuid} --database {folder / 'roost.db'}"


def test_changed_fleets_are_beside_the_present_one(folder):
    found = compared("--from", folder, "--add-hosts", "host-0=2", "--without-rack", "r1")
    now, other = found["sets"]
    assert (now["name"], other["name"]) == ("settings", "settings, other fleet")
    assert (now["hosts"], other["hosts"]) == (3, 4)
    assert (now["granted"], other["granted"], found["different_outcomes"]) == (13, 14, 1)
    assert compared("--from", folder, "--without-host", "racked")["sets"][1]["granted"] == 9


def test_only_the_newest_requests_are_decided(folder):
    assert compared("--from", folder, "--newest", 3)["requests"] == 3
    assert compared("--from", folder, "--since", "1h")["requests"] == 14
    assert compared("--from", folder, "--since", "2126-01-01")["requests"] == 0
    assert "0 recorded requests" in run("--from", folder, "--since", "2126-01-01").stdout


def test_report_is_written_to_a_file(folder, tmp_path):
    path = tmp_path / "report.json"
    result = run("--from", folder, "--json", path)
    assert result.exit_code == 0, result.output
    assert json.loads(path.read_text())["requests"] == 14


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--from", "{}", "--hosts", "2x4c/4m"), "--from cannot be combined with --hosts"),
        (("--from", "{}", "vms.csv"), "--from cannot be combined with trace"),
        (("--from", "{}", "--memory"), "--from cannot be combined with --memory"),
        (("--since", "1h"), "--since, --newest, --add-hosts and --without-… need --from"),
        (("--without-rack", "r1"), "--since, --newest, --add-hosts and --without-… need --from"),
    ],
)
def test_options_of_the_two_forms_are_not_combined(folder, words, error):
    result = run(*(word.format(folder) for word in words))
    assert result.exit_code == 2
    assert error in result.output


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--add-hosts", "host-0"), "--add-hosts must be HOST=N"),
        (("--add-hosts", "host-0=0"), "--add-hosts must be HOST=N"),
        (("--add-hosts", "host-9=1"), "there is no host 'host-9'"),
        (("--without-rack", "r7"), "there is no rack 'r7'"),
        (("--since", "yesterday"), "--since must be like"),
    ],
)
def test_wrong_values_are_refused(folder, words, error):
    result = run("--from", folder, *words)
    assert isinstance(result.exception, BadRequest)
    assert error in str(result.exception)


def test_missing_database_is_refused(tmp_path):
    result = run("--from", tmp_path / "none.db")
    assert isinstance(result.exception, Unavailable)
    assert "does not exist" in str(result.exception)
