"""The messages in the guide to wrong settings are the real ones: of commands, at startup, and over HTTP."""

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
from tests.support.servers.in_process_api import roost_api

TEXT = (ROOT / "docs" / "how-to" / "find-a-wrong-setting.md").read_text(encoding="utf-8")
SMALL = {"vcpus": 1, "memory_mb": 512}
_ERROR_MARKS = ("must be", "which is not set")  # parts of the messages that end a command


def tables(section):
    """Return the rows of each table of a section, as cells without backquotes."""
    body = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)[1]
    bodies = re.findall(r"^\|[^\n]*\|\n\|[-|]+\|\n((?:\|[^\n]*\|\n)+)", body, re.MULTILINE)
    return [
        [[cell.strip("` ") for cell in re.split(r" \| ", line[1:-1])] for line in each.splitlines()] for each in bodies
    ]


WRONG, IGNORED = tables("Settings")
(NOVA,) = tables("Only in nova.conf")
WARNING_SPECS, WRONG_SPECS = tables("Extra specs")
(QUERIES,) = tables("Queries")
(HINTS,) = tables("Hints")
(METADATA,) = tables("Metadata of aggregates")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the files of the guide, without settings of the machine."""
    for name in ("ROOST_CONFIG", "ROOST_NOVA_CONF", "ROOST_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, body in files(TEXT).items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    return tmp_path


def write_settings(folder, row):
    """Write each file of a row; yield the options to read it, and the prefix of its messages."""
    section, toml, conf = row[1:4]
    (folder / "roost.toml").write_text(f"[{section}]\n{toml}\n", encoding="utf-8")
    yield ["--config", "roost.toml"], "roost.toml: "
    if conf != "-":
        (folder / "nova.conf").write_text(f"[{section}]\n{conf}\n", encoding="utf-8")
        (folder / "roost.toml").write_text("", encoding="utf-8")
        yield ["--config", "roost.toml", "--nova-conf", "nova.conf"], "nova.conf:2: "


@pytest.mark.parametrize("row", WRONG, ids=lambda row: row[2])
def test_wrong_setting_is_reported_by_commands_and_at_startup(folder, monkeypatch, row):
    for options, prefix in write_settings(folder, row):
        check_result = CliRunner().invoke(check, options)
        assert check_result.stdout == f"{prefix}{row[4]}\n"
        assert isinstance(check_result.exception, BadSettings)
        decision = CliRunner().invoke(decide, ["--fleet", "wrong.json", "--request", "small.json", *options])
        assert (type(decision.exception), str(decision.exception)) == (BadSettings, f"{prefix}{row[4]}")
        if "--nova-conf" in options:
            monkeypatch.setenv("ROOST_NOVA_CONF", "nova.conf")
        with pytest.raises(BadSettings) as caught:
            resolve_server_config(
                folder / "roost.toml", folder, {"ROOST_NOVA_CONF": "nova.conf"} if "nova" in prefix else {}
            )
        assert str(caught.value).endswith(f"{prefix}{row[4]}")


def test_server_exits_with_the_documented_message(folder):
    row = WRONG[0]
    for options, prefix in write_settings(folder, row):
        result = roost("up", "--listen", "127.0.0.1:0", "--data", "data", *options, cwd=folder)
        assert (result.returncode, result.stdout, result.stderr) == (3, "", f"roost: {prefix}{row[4]}\n")


@pytest.mark.parametrize("row", IGNORED, ids=lambda row: row[2])
def test_ignored_setting_is_reported_with_its_file_and_in_decisions(folder, row):
    sentences = re.split(r"` `", row[4])
    for options, prefix in write_settings(folder, row):
        messages = [f"roost: {prefix}{sentence}" for sentence in sentences]
        check_result = CliRunner().invoke(check, options)
        assert (check_result.exit_code, check_result.stderr.splitlines()) == (0, messages)
        decision = CliRunner().invoke(decide, ["--fleet", "wrong.json", "--request", "small.json", *options])
        assert decision.stderr.splitlines() == messages
        assert [sentence for sentence in sentences if f"warning: {sentence}" not in decision.stdout.splitlines()] == []
        environ = {"ROOST_NOVA_CONF": "nova.conf"} if "nova" in prefix else {}
        server_config = resolve_server_config(folder / "roost.toml", folder / "data", environ)
        assert all(note.endswith(f"{prefix}{each}") for note, each in zip(server_config.notes, sentences, strict=True))


@pytest.mark.parametrize(("_", "section", "line", "sentence"), NOVA)
def test_nova_conf_messages_are_as_documented(folder, _, section, line, sentence):
    (folder / "nova.conf").write_text(f"[{section}]\n{line}\n", encoding="utf-8")
    (folder / "roost.toml").write_text("", encoding="utf-8")
    check_result = CliRunner().invoke(check, ["--config", "roost.toml", "--nova-conf", "nova.conf"])
    if any(part in sentence for part in _ERROR_MARKS):
        assert (check_result.stdout, type(check_result.exception)) == (f"{sentence}\n", BadSettings)
    else:
        assert (check_result.exit_code, check_result.stderr) == (0, f"roost: {sentence}\n")


@pytest.fixture(scope="module")
def own():
    """The /v1 API with the rules of the guide, over two hosts."""
    with roost_api(hosts(), settings=read_settings(files(TEXT)["wrong.toml"])) as own:
        yield own


def hosts(**metadata):
    """Return the fleet of the guide, with an aggregate if there is metadata."""
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
        HostSpec(provider_uuid=root.uuid, host=root.name, node=root.name, facts=host_facts)
        for root, host_facts in zip(roots, facts, strict=True)
    ]
    aggregates = [Aggregate(uuid=fast, name="fast", metadata=metadata)] if metadata else []
    return Fleet(providers=roots, hosts=specs, aggregates=aggregates)


def decide_on(folder, request, *, config="wrong.toml", fleet="wrong.json"):
    """Decide on a request; return the warnings, the error, and its text without the file name."""
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
    result = CliRunner().invoke(decide, ["--fleet", fleet, "--request", "request.json", "--config", config])
    assert result.exception is None or isinstance(result.exception, RoostError)
    warnings = [line.removeprefix("warning: ") for line in result.stdout.splitlines() if line.startswith("warning: ")]
    return warnings, result.exception, str(result.exception or "").removeprefix("request.json: ")


@pytest.mark.parametrize(("key", "value", "sentence"), WARNING_SPECS)
def test_invalid_extra_spec_gives_a_warning(folder, own, key, value, sentence):
    request = {"flavor": {**SMALL, "extra_specs": {key: value}}}
    warnings, error, _ = decide_on(folder, request)
    assert sentence in warnings
    assert error is None or isinstance(error, NoValidHost)
    assert own.post("/decisions", {**request, "dry_run": True}).json["warnings"] == warnings


@pytest.mark.parametrize(("key", "value", "sentence"), [row for row in WARNING_SPECS if "rejects all" not in row[2]])
def test_invalid_extra_spec_cannot_be_stored(own, key, value, sentence):
    response = own.ask("PUT", "/flavors/odd", {**SMALL, "extra_specs": {key: value}})
    assert (response.status, response.json["detail"]) == (400, f"$.extra_specs: {sentence}")


@pytest.mark.parametrize(("key", "value", "sentence"), WRONG_SPECS)
def test_contradictory_extra_spec_is_an_error(folder, own, key, value, sentence):
    check_refused(folder, own, {"flavor": {**SMALL, "extra_specs": {key: value}}}, sentence)


@pytest.mark.parametrize(("query", "sentence"), QUERIES)
def test_invalid_query_hint(folder, own, query, sentence):
    request = {"flavor": SMALL, "hints": {"query": query}}
    if "without an order" not in sentence:
        check_refused(folder, own, request, sentence)
        return
    warnings, error, _ = decide_on(folder, request)
    assert (warnings, type(error)) == ([sentence], NoValidHost)
    assert own.post("/decisions", request).json["warnings"] == [sentence]


@pytest.mark.parametrize(("hints", "sentence"), HINTS)
def test_hint_of_the_wrong_type(folder, own, hints, sentence):
    request = {"flavor": SMALL, "hints": json.loads(f"{{{hints}}}")}
    if sentence.startswith("No valid host"):
        assert decide_on(folder, request)[2] == sentence
        assert own.post("/decisions", request).json["reason"] in sentence
    elif sentence.startswith("$"):
        assert decide_on(folder, request)[2] == sentence
        response = own.post("/decisions", request)
        assert (response.status, response.json["field"]) == (400, sentence.partition(":")[0])
    else:
        check_refused(folder, own, request, sentence)


def check_refused(folder, own, request, sentence):
    """Check that the command and the API refuse the request with this message."""
    warnings, error, text = decide_on(folder, request)
    assert (warnings, error.exit_code, text) == ([], 2, sentence)
    response = own.post("/decisions", request)
    assert (response.status in (400, 404), response.json["detail"]) == (True, sentence)


@pytest.mark.parametrize(("key", "value", "sentence"), METADATA)
def test_aggregate_metadata_that_is_not_a_number(folder, key, value, sentence):
    document = json.loads(files(TEXT)["wrong.json"])
    document["aggregates"] = [{"name": "fast", "hosts": ["a"], "metadata": {key: value}}]
    (folder / "wrong.json").write_text(json.dumps(document), encoding="utf-8")
    assert sentence in decide_on(folder, {"flavor": SMALL})[0]
    with roost_api(hosts(**{key: value}), settings=read_settings(files(TEXT)["wrong.toml"])) as own:
        assert sentence in own.post("/decisions", {"flavor": SMALL}).json["warnings"]


def test_missing_metric(folder):
    (sentence,) = re.findall(r"^roost: (Metric .*)$", TEXT, re.MULTILINE)
    _, error, text = decide_on(folder, {"flavor": SMALL}, config="metrics.toml")
    assert (type(error), text) == (ComputeHostMetricNotFound, sentence)
    with roost_api(hosts(), settings=read_settings(files(TEXT)["metrics.toml"])) as own:
        response = own.post("/decisions", {"flavor": SMALL})
        assert (response.status, response.json["detail"]) == (404, sentence)
    (folder / "metrics.toml").write_text(files(TEXT)["metrics.toml"] + "required = false\n", encoding="utf-8")
    assert decide_on(folder, {"flavor": SMALL}, config="metrics.toml")[1] is None
