"""``roost decide`` and ``roost fleet export`` as users run them."""

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
    """Return a function that runs a command in a temporary folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROOST_CONFIG", raising=False)

    def run(command, *arguments):
        return CliRunner().invoke(command, [str(each) for each in arguments])

    return run


def write_json(folder, name, document):
    path = folder / name
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def arguments(tmp_path):
    """Return the arguments that name both documents."""
    return ("--fleet", write_json(tmp_path, "f.json", FLEET), "--request", write_json(tmp_path, "r.json", REQUEST))


def test_decision_is_printed_as_text_and_as_json(run, arguments):
    text = run(decide, *arguments)
    assert text.exit_code == 0, text.output
    assert text.stdout.startswith("granted: b\n  alternates: a\n")
    answer = json.loads(run(decide, *arguments, "--format", "json").stdout)
    assert [pick["host"] for pick in answer["picks"]] == ["b"]
    assert answer["searched"] is False


@pytest.mark.shows("S004", "S181")
def test_refusal_is_printed_and_has_its_own_exit_code(tmp_path, arguments):
    write_json(tmp_path, "r.json", REQUEST | {"force_hosts": ["nobody"]})
    result = roost("decide", *arguments, "--format", "json", cwd=tmp_path)
    answer = json.loads(result.stdout)
    assert result.returncode == NoValidHost.exit_code == 6
    assert result.stderr == f"roost: {answer['reason']}\n"
    assert [host["host"] for stage in answer["stages"] for host in stage["refused"]] == ["a", "b"]


def test_equal_arguments_print_equal_bytes_and_leave_no_files(tmp_path, arguments):
    arguments = (*arguments, "--format", "json", "--seed", "7", "--now", "12.5")
    first, second = (roost("decide", *arguments, cwd=tmp_path, HOME=str(tmp_path)) for _ in range(2))
    assert first.stdout == second.stdout
    assert (json.loads(first.stdout)["seed"], json.loads(first.stdout)["now"]) == (7, 12.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.json", "r.json"]


def test_settings_affect_the_decision(run, tmp_path, arguments):
    (tmp_path / "pack.toml").write_text("[filter_scheduler]\nram_weight_multiplier = -1.0\n")
    assert run(decide, *arguments, "--config", "pack.toml").stdout.startswith("granted: a\n")


@pytest.mark.parametrize("document", ["fleet", "request", "answer"])
def test_schemas_are_printed(run, document):
    schema = json.loads(run(decide, "--schema", document).stdout)
    assert schema["$ref"].lower().startswith(f"#/$defs/{document}")


def test_invalid_arguments_are_refused(run, arguments):
    assert "give --fleet and --request" in run(decide, "--fleet", "f.json").stderr
    assert "cannot both be" in run(decide, "--fleet", "-", "--request", "-").stderr
    assert isinstance(run(decide, *arguments, "--now", "inf").exception, BadRequest)
    assert run(decide, *arguments, "--seed", "-1").exit_code == 2


def test_invalid_document_is_refused_in_one_line(tmp_path):
    write_json(tmp_path, "f.json", {"hosts": [{"host": "a", "free": 1}]})
    write_json(tmp_path, "r.json", REQUEST)
    result = roost("decide", "--fleet", "f.json", "--request", "r.json", cwd=tmp_path)
    assert result.returncode == BadFile.exit_code == 2
    assert result.stderr == "roost: f.json: $.hosts[0]: there is no key 'free'\n"
    assert result.stdout == ""


def test_text_of_a_long_fleet_is_truncated(run, tmp_path):
    many = {"hosts": [{"host": f"h{n}", "free_ram_mb": n} for n in range(30)]}
    providers = [{"name": f"h{n}", "inventories": {"VCPU": {"total": 8 if n < 15 else 1}}} for n in range(30)]
    path = write_json(tmp_path, "f.json", many | {"providers": providers})
    request = write_json(tmp_path, "r.json", {"flavor": {"vcpus": 4}, "count": 20})
    text = run(decide, "--fleet", path, "--request", request).stdout
    assert "granted: 20 instances on " in text
    assert text.count("; -o json has all") == 3
    assert "h15                            has 1 of 4 VCPU" in text


# --- export ----------------------------------------------------------------------------------------------------------


def open_fleet(folder, config=None):
    """Return an open database with a generated fleet and instances, and a request."""
    workload = generate(Recipe(hosts=25, requests=60, seed=3), Options())
    product = open_roost(config, folder, environ={})
    product.install(workload.fleet)
    acts = [event.act for event in workload.events]
    product.outcomes(acts[:-5])
    last_request = next(act for act in reversed(acts) if isinstance(act, Request))
    return product, Request(flavor=last_request.flavor, count=3)


def check_export(run, product, request, *arguments):
    """Check that a fleet, exported while its database is open, gives the decision of the database."""
    before = (product.state.position, len(product.decisions(1000)))
    result = run(fleet, "export", *arguments, "-o", "live.json")
    assert result.exit_code == 0, result.output
    document = {
        "flavor": {name: getattr(request.flavor, name) for name in request.flavor.__struct_fields__},
        "count": 3,
    }
    Path("asked.json").write_text(json.dumps(document))
    answer = json.loads(run(decide, "--fleet", "live.json", "--request", "asked.json", "--format", "json").stdout)
    live = product.fork(random=FixedRandom(0)).decide(request)
    assert [pick["host"] for pick in answer["picks"]] == [pick.host for pick in live.picks]
    assert answer["reason"] == live.reason
    assert (product.state.position, len(product.decisions(1000))) == before


def test_fleet_is_exported_while_a_process_serves_it(run, tmp_path):
    product, request = open_fleet(tmp_path / "data")
    with product:
        check_export(run, product, request, "--data", "data")
        output = run(fleet, "export", "--data", "data").stdout
    exported = json.loads((tmp_path / "live.json").read_text())
    assert json.loads(output) | {"now": 0} == exported | {"now": 0}
    assert len(exported["hosts"]) == 25


def test_exported_fleet_contains_no_terminal_commands(run, tmp_path):
    odd = "h\x9b2J\u202e"
    root = ProviderSpec(uuid=uuid_of("odd"), name=odd, inventories={"VCPU": Inventory(total=1)})
    with open_roost(None, tmp_path / "data", environ={}) as product:
        product.install(Fleet(providers=[root], hosts=[HostSpec(provider_uuid=root.uuid, host=odd, node=odd)]))
    output = run(fleet, "export", "--data", "data").stdout
    assert json.loads(output)["hosts"][0]["host"] == odd
    assert output.replace("\n", "").isprintable()


def test_a_fleet_in_postgresql_is_exported(run, tmp_path, postgres_url):
    config = settings_for(postgres_url, tmp_path)
    product, request = open_fleet(None, config)
    with product:
        check_export(run, product, request, "--config", config)


def test_export_of_an_absent_database_fails_and_creates_nothing(run, tmp_path):
    result = run(fleet, "export", "--data", "absent")
    assert isinstance(result.exception, Unavailable)
    assert not (tmp_path / "absent").exists()


def test_unwritable_export_file_is_a_clear_error(run, tmp_path):
    product, _ = open_fleet(tmp_path / "data")
    product.close()
    result = run(fleet, "export", "--data", "data", "-o", "no/such/folder")
    assert isinstance(result.exception, BadFile)
    assert str(result.exception) == "no/such/folder: cannot be written: No such file or directory"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_failed_export_keeps_the_existing_file(run, tmp_path):
    (tmp_path / "live.json").write_text("yesterday")
    result = run(fleet, "export", "--data", "absent", "-o", "live.json")
    assert isinstance(result.exception, Unavailable)
    assert (tmp_path / "live.json").read_text() == "yesterday"
    assert [path.name for path in tmp_path.iterdir()] == ["live.json"]
