"""``roost decide`` and ``roost fleet export`` as their users run them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from roost.app import open_roost
from roost.cli.commands.decide import decide
from roost.cli.commands.fleet import fleet
from roost.errors import BadFile, BadRequest, NoValidHost, Unavailable
from roost.model.fleet import Fleet
from roost.model.host import HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Request
from roost.scheduler.explain.frozen_clock import FixedRandom
from roost.simulator.stable_uuids import uuid_of
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.support.fleets.products import roost, settings_for

FLEET = {"hosts": [{"host": "a", "free_ram_mb": 1}, {"host": "b", "free_ram_mb": 2}], "zones": {"east": ["a"]}}
REQUEST = {"flavor": {"name": "small", "vcpus": 1, "memory_mb": 512}}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROOST_CONFIG", raising=False)

    def run(command, *words):
        return CliRunner().invoke(command, [str(word) for word in words])

    return run


def written(folder, name, document):
    path = folder / name
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def words(tmp_path):
    """Give the words that name both documents."""
    return ("--fleet", written(tmp_path, "f.json", FLEET), "--request", written(tmp_path, "r.json", REQUEST))


def test_a_decision_is_told_as_text_and_as_json(run, words):
    text = run(decide, *words)
    assert text.exit_code == 0, text.output
    assert text.stdout.startswith("granted: b\n  alternates: a\n")
    answer = json.loads(run(decide, *words, "--format", "json").stdout)
    assert [pick["host"] for pick in answer["picks"]] == ["b"]
    assert answer["searched"] is False


@pytest.mark.shows("S004", "S181")
def test_a_refusal_is_printed_and_ends_with_its_own_exit_code(tmp_path, words):
    written(tmp_path, "r.json", REQUEST | {"force_hosts": ["nobody"]})
    done = roost("decide", *words, "--format", "json", cwd=tmp_path)
    answer = json.loads(done.stdout)
    assert done.returncode == NoValidHost.exit_code == 6
    assert done.stderr == f"roost: No valid host was found. {answer['reason']}\n"
    assert [host["host"] for stage in answer["stages"] for host in stage["refused"]] == ["a", "b"]


def test_equal_words_print_equal_bytes_and_nothing_is_left_behind(tmp_path, words):
    words = (*words, "--format", "json", "--seed", "7", "--now", "12.5")
    first, second = (roost("decide", *words, cwd=tmp_path, HOME=str(tmp_path)) for _ in range(2))
    assert first.stdout == second.stdout
    assert (json.loads(first.stdout)["seed"], json.loads(first.stdout)["now"]) == (7, 12.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.json", "r.json"]


def test_the_settings_decide(run, tmp_path, words):
    (tmp_path / "pack.toml").write_text("[filter_scheduler]\nram_weight_multiplier = -1.0\n")
    assert run(decide, *words, "--config", "pack.toml").stdout.startswith("granted: a\n")


@pytest.mark.parametrize("document", ["fleet", "request", "answer"])
def test_schemas_are_printed(run, document):
    schema = json.loads(run(decide, "--schema", document).stdout)
    assert schema["$ref"].lower().startswith(f"#/$defs/{document}")


def test_words_that_cannot_be_meant_are_told(run, words):
    assert "give --fleet and --request" in run(decide, "--fleet", "f.json").stderr
    assert "cannot both be" in run(decide, "--fleet", "-", "--request", "-").stderr
    assert isinstance(run(decide, *words, "--now", "inf").exception, BadRequest)
    assert run(decide, *words, "--seed", "-1").exit_code == 2


def test_a_document_that_cannot_be_meant_is_told_in_one_line(tmp_path):
    written(tmp_path, "f.json", {"hosts": [{"host": "a", "free": 1}]})
    written(tmp_path, "r.json", REQUEST)
    done = roost("decide", "--fleet", "f.json", "--request", "r.json", cwd=tmp_path)
    assert done.returncode == BadFile.exit_code == 2
    assert done.stderr == "roost: f.json: $.hosts[0]: there is no key 'free'\n"
    assert done.stdout == ""


def test_a_long_fleet_is_cut_as_text(run, tmp_path):
    many = {"hosts": [{"host": f"h{n}", "free_ram_mb": n} for n in range(30)]}
    providers = [{"name": f"h{n}", "inventories": {"VCPU": {"total": 8 if n < 15 else 1}}} for n in range(30)]
    path = written(tmp_path, "f.json", many | {"providers": providers})
    asked = written(tmp_path, "r.json", {"flavor": {"vcpus": 4}, "count": 20})
    text = run(decide, "--fleet", path, "--request", asked).stdout
    assert "granted: 20 instances on " in text
    assert text.count("; --format json has all") == 3
    assert "h15                            has 1 of 4 VCPU" in text


# --- export ----------------------------------------------------------------------------------------------------------


def filled(folder, config=None):
    """Give a served database with a generated fleet at work, and a request."""
    workload = generate(Recipe(hosts=25, requests=60, seed=3), Options())
    served = open_roost(config, folder, environ={})
    served.install(workload.fleet)
    acts = [event.act for event in workload.events]
    served.outcomes(acts[:-5])
    asked = next(act for act in reversed(acts) if isinstance(act, Request))
    return served, Request(flavor=asked.flavor, count=3)


def check_export(run, served, request, *words):
    """Check that the document, written while the database is served, decides as the database."""
    before = (served.state.position, len(served.decisions(1000)))
    done = run(fleet, "export", *words, "-o", "live.json")
    assert done.exit_code == 0, done.output
    asked = {"flavor": {name: getattr(request.flavor, name) for name in request.flavor.__struct_fields__}, "count": 3}
    Path("asked.json").write_text(json.dumps(asked))
    answer = json.loads(run(decide, "--fleet", "live.json", "--request", "asked.json", "--format", "json").stdout)
    live = served.fork(random=FixedRandom(0)).decide(request)
    assert [pick["host"] for pick in answer["picks"]] == [pick.host for pick in live.picks]
    assert answer["reason"] == live.reason
    assert (served.state.position, len(served.decisions(1000))) == before


def test_a_fleet_is_exported_beside_the_process_that_serves_it(run, tmp_path):
    served, request = filled(tmp_path / "data")
    with served:
        check_export(run, served, request, "--data", "data")
        printed = run(fleet, "export", "--data", "data").stdout
    exported = json.loads((tmp_path / "live.json").read_text())
    assert json.loads(printed) | {"now": 0} == exported | {"now": 0}
    assert len(exported["hosts"]) == 25


def test_no_name_in_an_exported_fleet_reaches_the_terminal_as_a_command(run, tmp_path):
    odd = "h\x9b2J\u202e"
    root = ProviderSpec(uuid=uuid_of("odd"), name=odd, inventories={"VCPU": Inventory(total=1)})
    with open_roost(None, tmp_path / "data", environ={}) as served:
        served.install(Fleet(providers=[root], hosts=[HostSpec(provider_uuid=root.uuid, host=odd, node=odd)]))
    printed = run(fleet, "export", "--data", "data").stdout
    assert json.loads(printed)["hosts"][0]["host"] == odd
    assert printed.replace("\n", "").isprintable()


def test_a_fleet_in_postgresql_is_exported(run, tmp_path, postgres_url):
    config = settings_for(postgres_url, tmp_path)
    served, request = filled(None, config)
    with served:
        check_export(run, served, request, "--config", config)


def test_what_is_not_there_is_not_exported(run, tmp_path):
    done = run(fleet, "export", "--data", "absent")
    assert isinstance(done.exception, Unavailable)
    assert not (tmp_path / "absent").exists()


def test_a_file_that_cannot_be_written_is_told(run, tmp_path):
    served, _ = filled(tmp_path / "data")
    served.close()
    done = run(fleet, "export", "--data", "data", "-o", "no/such/folder")
    assert isinstance(done.exception, BadFile)
    assert str(done.exception) == "no/such/folder: cannot be written: No such file or directory"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_an_export_that_fails_leaves_the_file_that_was_there(run, tmp_path):
    (tmp_path / "live.json").write_text("yesterday")
    done = run(fleet, "export", "--data", "absent", "-o", "live.json")
    assert isinstance(done.exception, Unavailable)
    assert (tmp_path / "live.json").read_text() == "yesterday"
    assert [path.name for path in tmp_path.iterdir()] == ["live.json"]
