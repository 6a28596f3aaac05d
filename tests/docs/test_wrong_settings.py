"""What the guide to wrong settings says of every row is what is printed: by commands, at the start, and over HTTP."""

import json
import re

import pytest
from click.testing import CliRunner

from roost.app import resolve_server_config
from roost.cli.commands.config import check
from roost.cli.commands.decide import decide
from roost.errors import BadSettings, ComputeHostMetricNotFound, NoValidHost, RoostError
from roost.model.fleet import Fleet
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.settings import read_settings
from roost.simulator.stable_uuids import uuid_of
from tests.docs.documents import ROOT, files
from tests.support.fleets.products import roost
from tests.support.servers.in_process_api import asking_own

TEXT = (ROOT / "docs" / "how-to" / "find-a-wrong-setting.md").read_text(encoding="utf-8")
SMALL = {"vcpus": 1, "memory_mb": 512}
_ENDING = ("must be", "which is not set")  # how sentences go on that end a command


def tables(section):
    """Return the rows of each table of a section: the cells, without what marks them as code."""
    body = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)[1]
    found = re.findall(r"^\|[^\n]*\|\n\|[-|]+\|\n((?:\|[^\n]*\|\n)+)", body, re.MULTILINE)
    return [
        [[cell.strip("` ") for cell in re.split(r" \| ", line[1:-1])] for line in each.splitlines()] for each in found
    ]


WRONG, DROPPED = tables("Settings")
(NOVA,) = tables("Only in nova.conf")
WARNED_SPECS, WRONG_SPECS = tables("Extra specs")
(QUERIES,) = tables("Queries")
(HINTS,) = tables("Hints")
(METADATA,) = tables("Metadata of aggregates")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in a folder with the files of the guide, and with no settings of the machine."""
    for name in ("ROOST_CONFIG", "ROOST_NOVA_CONF", "ROOST_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, body in files(TEXT).items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    return tmp_path


def written(folder, row):
    """Write each file that a row speaks of; return the options by which it is read, and what sentences begin with."""
    section, toml, conf = row[1:4]
    (folder / "roost.toml").write_text(f"[{section}]\n{toml}\n", encoding="utf-8")
    yield ["--config", "roost.toml"], "roost.toml: "
    if conf != "-":
        (folder / "nova.conf").write_text(f"[{section}]\n{conf}\n", encoding="utf-8")
        (folder / "roost.toml").write_text("", encoding="utf-8")
        yield ["--config", "roost.toml", "--nova-conf", "nova.conf"], "nova.conf:2: "


@pytest.mark.parametrize("row", WRONG, ids=lambda row: row[2])
def test_a_wrong_setting_is_told_by_every_command_and_at_the_start(folder, monkeypatch, row):
    for options, where in written(folder, row):
        checked = CliRunner().invoke(check, options)
        assert checked.stdout == f"{where}{row[4]}\n"
        assert isinstance(checked.exception, BadSettings)
        decided = CliRunner().invoke(decide, ["--fleet", "wrong.json", "--request", "small.json", *options])
        assert (type(decided.exception), str(decided.exception)) == (BadSettings, f"{where}{row[4]}")
        if "--nova-conf" in options:
            monkeypatch.setenv("ROOST_NOVA_CONF", "nova.conf")
        with pytest.raises(BadSettings) as caught:
            resolve_server_config(
                folder / "roost.toml", folder, {"ROOST_NOVA_CONF": "nova.conf"} if "nova" in where else {}
            )
        assert str(caught.value).endswith(f"{where}{row[4]}")


def test_a_server_ends_with_the_sentence(folder):
    row = WRONG[0]
    for options, where in written(folder, row):
        ran = roost("up", "--listen", "127.0.0.1:0", "--data", "data", *options, cwd=folder)
        assert (ran.returncode, ran.stdout, ran.stderr) == (3, "", f"roost: {where}{row[4]}\n")


@pytest.mark.parametrize("row", DROPPED, ids=lambda row: row[2])
def test_what_is_passed_over_is_told_with_the_file_and_in_the_decision(folder, row):
    sentences = re.split(r"` `", row[4])
    for options, where in written(folder, row):
        told = [f"roost: {where}{sentence}" for sentence in sentences]
        checked = CliRunner().invoke(check, options)
        assert (checked.exit_code, checked.stderr.splitlines()) == (0, told)
        decided = CliRunner().invoke(decide, ["--fleet", "wrong.json", "--request", "small.json", *options])
        assert decided.stderr.splitlines() == told
        assert [sentence for sentence in sentences if f"warning: {sentence}" not in decided.stdout.splitlines()] == []
        environ = {"ROOST_NOVA_CONF": "nova.conf"} if "nova" in where else {}
        served = resolve_server_config(folder / "roost.toml", folder / "data", environ)
        assert [note.endswith(f"{where}{each}") for note, each in zip(served.notes, sentences, strict=True)]


@pytest.mark.parametrize(("_", "section", "line", "sentence"), NOVA)
def test_what_a_nova_conf_alone_can_say(folder, _, section, line, sentence):
    (folder / "nova.conf").write_text(f"[{section}]\n{line}\n", encoding="utf-8")
    (folder / "roost.toml").write_text("", encoding="utf-8")
    checked = CliRunner().invoke(check, ["--config", "roost.toml", "--nova-conf", "nova.conf"])
    if any(part in sentence for part in _ENDING):
        assert (checked.stdout, type(checked.exception)) == (f"{sentence}\n", BadSettings)
    else:
        assert (checked.exit_code, checked.stderr) == (0, f"roost: {sentence}\n")


@pytest.fixture(scope="module")
def own():
    """Open the API with the rules of the guide on two hosts, of which one is in an aggregate for each bad key."""
    with asking_own(hosts(), settings=read_settings(files(TEXT)["wrong.toml"])) as own:
        yield own


def hosts(**metadata):
    """Return the fleet of the guide; with metadata, its aggregate."""
    fast = uuid_of("aggregate", "fast")
    inventories = {"VCPU": Inventory(total=4), "MEMORY_MB": Inventory(total=4096)}
    inside = frozenset({fast} if metadata else ())
    roots = [
        ProviderSpec(
            uuid=uuid_of("host", name), name=name, inventories=inventories, aggregates=inside if name == "a" else ()
        )
        for name in "ab"
    ]
    facts = [HostFacts(num_io_ops=1, failed_builds=1), HostFacts(metrics={"load": 0.5})]
    specs = [
        HostSpec(provider_uuid=root.uuid, host=root.name, node=root.name, facts=told)
        for root, told in zip(roots, facts, strict=True)
    ]
    aggregates = [Aggregate(uuid=fast, name="fast", metadata=metadata)] if metadata else []
    return Fleet(providers=roots, hosts=specs, aggregates=aggregates)


def decided(folder, request, *, config="wrong.toml", fleet="wrong.json"):
    """Decide on documents; return the warnings, and the error, without the file that it names."""
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    ran = CliRunner().invoke(decide, ["--fleet", fleet, "--request", "request.json", "--config", config])
    assert ran.exception is None or isinstance(ran.exception, RoostError)
    warnings = [line.removeprefix("warning: ") for line in ran.stdout.splitlines() if line.startswith("warning: ")]
    return warnings, ran.exception, str(ran.exception or "").removeprefix("request.json: ")


@pytest.mark.parametrize(("key", "value", "sentence"), WARNED_SPECS)
def test_an_extra_spec_that_cannot_be_meant_is_warned_of(folder, own, key, value, sentence):
    request = {"flavor": {**SMALL, "extra_specs": {key: value}}}
    warnings, error, _ = decided(folder, request)
    assert sentence in warnings
    assert error is None or isinstance(error, NoValidHost)
    assert own.post("/decisions", {**request, "dry_run": True}).json["warnings"] == warnings


@pytest.mark.parametrize(("key", "value", "sentence"), [row for row in WARNED_SPECS if "rejects all" not in row[2]])
def test_no_stored_flavor_has_it(own, key, value, sentence):
    answered = own.ask("PUT", "/flavors/odd", {**SMALL, "extra_specs": {key: value}})
    assert (answered.status, answered.json["detail"]) == (400, f"$.extra_specs: {sentence}")


@pytest.mark.parametrize(("key", "value", "sentence"), WRONG_SPECS)
def test_an_extra_spec_that_contradicts_itself_or_others_is_an_error(folder, own, key, value, sentence):
    refused(folder, own, {"flavor": {**SMALL, "extra_specs": {key: value}}}, sentence)


@pytest.mark.parametrize(("query", "sentence"), QUERIES)
def test_a_query_that_is_none(folder, own, query, sentence):
    request = {"flavor": SMALL, "hints": {"query": query}}
    if "without an order" not in sentence:
        refused(folder, own, request, sentence)
        return
    warnings, error, _ = decided(folder, request)
    assert (warnings, type(error)) == ([sentence], NoValidHost)
    assert own.post("/decisions", request).json["warnings"] == [sentence]


@pytest.mark.parametrize(("hints", "sentence"), HINTS)
def test_a_hint_of_the_wrong_kind(folder, own, hints, sentence):
    request = {"flavor": SMALL, "hints": json.loads(f"{{{hints}}}")}
    if sentence.startswith("No valid host"):
        assert decided(folder, request)[2] == sentence
        assert own.post("/decisions", request).json["reason"] in sentence
    elif sentence.startswith("$"):
        assert decided(folder, request)[2] == sentence
        answered = own.post("/decisions", request)
        assert (answered.status, answered.json["field"]) == (400, sentence.partition(":")[0])
    else:
        refused(folder, own, request, sentence)


def refused(folder, own, request, sentence):
    """See that both say the sentence and decide nothing."""
    warnings, error, text = decided(folder, request)
    assert (warnings, error.exit_code, text) == ([], 2, sentence)
    answered = own.post("/decisions", request)
    assert (answered.status in (400, 404), answered.json["detail"]) == (True, sentence)


@pytest.mark.parametrize(("key", "value", "sentence"), METADATA)
def test_metadata_that_is_no_number(folder, key, value, sentence):
    document = json.loads(files(TEXT)["wrong.json"])
    document["aggregates"] = [{"name": "fast", "hosts": ["a"], "metadata": {key: value}}]
    (folder / "wrong.json").write_text(json.dumps(document), encoding="utf-8")
    assert sentence in decided(folder, {"flavor": SMALL})[0]
    with asking_own(hosts(**{key: value}), settings=read_settings(files(TEXT)["wrong.toml"])) as own:
        assert sentence in own.post("/decisions", {"flavor": SMALL}).json["warnings"]


def test_a_metric_that_is_missing(folder):
    (sentence,) = re.findall(r"^roost: (Metric .*)$", TEXT, re.MULTILINE)
    _, error, text = decided(folder, {"flavor": SMALL}, config="metrics.toml")
    assert (type(error), text) == (ComputeHostMetricNotFound, sentence)
    with asking_own(hosts(), settings=read_settings(files(TEXT)["metrics.toml"])) as own:
        answered = own.post("/decisions", {"flavor": SMALL})
        assert (answered.status, answered.json["detail"]) == (404, sentence)
    (folder / "metrics.toml").write_text(files(TEXT)["metrics.toml"] + "required = false\n", encoding="utf-8")
    assert decided(folder, {"flavor": SMALL}, config="metrics.toml")[1] is None
