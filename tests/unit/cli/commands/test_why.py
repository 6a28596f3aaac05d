import json
import sqlite3
import time
from datetime import UTC, datetime

import msgspec
import pytest

from roost.api.v1.schemas.decisions import ShownWhy
from roost.app import open_roost
from roost.model.evidence.summary import Summary
from roost.model.flavor import Flavor
from roost.model.request import Request
from tests.support.fleets.products import fleet, request

LARGE = Request(flavor=Flavor(name="large", vcpus=12, memory_mb=64), project_id="p")


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a database in use: three hosts of 8 VCPU, two refusals, one grant."""
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        roost.decide(LARGE)
        roost.decide(msgspec.structs.replace(LARGE, count=2))
        roost.decide(request(2))
        yield tmp_path


def newest(run, folder, which):
    code, output, _ = run("why", which, "--data", folder, "--format", "json")
    assert code == 0
    return msgspec.json.decode(output, type=ShownWhy)


def test_refusal_is_shown_with_the_nearest_hosts_and_relaxations(run, folder):
    why = newest(run, folder, "last-refused")
    assert why.decision.count == 2
    code, output, error = run("why", why.decision.uuid, "--data", folder)
    assert (code, error) == (0, "")
    lines = output.splitlines()
    assert lines[0].startswith(f"decision {why.decision.uuid}: refused at 20")
    assert "refused: 0 of 3 hosts: 3 lack 12 VCPU or more; room for 0 of 2 instances" in lines
    assert "  host-0  4 VCPU (has 8 of 12)" in lines
    assert ["8", "VCPU", "instead", "of", "12", "3"] in [line.split() for line in lines]
    assert lines[-1].startswith("the request cannot fit on this fleet, even when it is empty: 0 of 3 hosts")


def test_granted_decision_is_shown_with_its_original_ranking(run, folder):
    why = newest(run, folder, "last")
    assert [line.host for line in why.explanation.ranking] == ["host-0", "host-1", "host-2"]
    output = run("why", "last", "--data", folder)[1]
    assert "granted: host-0" in output.splitlines()
    assert "alternates: host-1, host-2" in output.splitlines()
    # At that time all three were empty; now one of them is not.
    assert len({line.total for line in why.explanation.ranking}) == 1


def test_replay_of_a_decision_is_identical(run, folder):
    for which in ("last", "last-refused"):
        code, output, _ = run("why", which, "--replay", "--data", folder)
        assert code == 0
        assert output.splitlines()[-1] == "the replay is identical, to the last bit"


def test_replay_under_other_settings_lists_the_differences(run, folder, tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text('[filter_scheduler]\nenabled_filters = ["ComputeFilter"]\nmax_attempts = 1\n')
    code, _, error = run("why", "last", "--replay", "--config", policy, "--data", folder)
    assert code != 0
    assert "max_attempts" in error
    policy.write_text("[scheduler]\nmax_attempts = 1\n")
    code, output, _ = run("why", "last", "--replay", "--config", policy, "--data", folder, "--format", "json")
    assert code == 0
    assert json.loads(output)["fields"] == ["alternates"]
    assert (
        "the replay differs in: alternates" in run("why", "last", "--replay", "--config", policy, "--data", folder)[1]
    )


def test_summary_counts_refusals_by_reason(run, folder):
    code, output, _ = run("why", "--summary", "--data", folder, "--format", "json")
    summary = msgspec.json.decode(output, type=Summary)
    assert (code, summary.refusals, summary.is_complete) == (0, 2, True)
    (reason,) = summary.reasons
    assert (reason.reason, reason.refusals, reason.instances, reason.projects) == ("lack 12 VCPU or more", 2, 3, 1)
    assert [(wanted.flavor, wanted.refusals) for wanted in reason.requests] == [("large", 2)]
    lines = run("why", "--summary", "--data", folder)[1].splitlines()
    assert lines[0] == "2 requests were refused"
    assert lines[3].split()[:3] == ["2", "3", "1"]
    assert lines[3].endswith("lack 12 VCPU or more  large (2)")
    tomorrow = datetime.fromtimestamp(time.time() + 86_400, tz=UTC).date()
    assert run("why", "--summary", "--since", tomorrow, "--data", folder)[1].startswith("0 requests were refused since")
    assert run("why", "--summary", "--since", "1h", "--data", folder)[1].startswith("2 requests were refused since")


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ((), 2, "give one of NAME, --instance and --summary"),
        (("last", "--summary"), 2, "give one of NAME, --instance and --summary"),
        (("--summary", "--replay"), 2, "--replay needs NAME"),
        (("",), 2, "name must not be empty"),
        (("last", "--since", "1h"), 2, "--since needs --summary"),
        (("--summary", "--since", "yesterday"), 2, "--since must be like 90m, 12h, 7d or 2026-01-31T12:00"),
        (("nonsense",), 4, "no such decision or instance: nonsense"),
        (("00000000-0000-0000-0000-000000000000",), 4, "no such decision or instance"),
        (("--instance", "nonsense"), 4, "no such instance: nonsense"),
        (("last", "--replay", "--config", "nowhere.toml"), 4, "nowhere.toml"),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(run, folder, words, code, error):
    exit_code, output, message = run("why", *words, "--data", folder)
    assert (exit_code, output) == (code, "")
    assert message.startswith("roost: ")
    assert error in message
    assert message.count("\n") == 1


def test_empty_database_has_nothing_to_explain(run, tmp_path):
    with open_roost(data=tmp_path):
        pass
    assert run("why", "last", "--data", tmp_path)[0] == 4
    assert run("why", "--summary", "--data", tmp_path)[1] == "0 requests were refused\n"


def test_decision_without_its_feed_is_shown_and_not_replayed(run, tmp_path):
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        decision = roost.decide(LARGE)
    database = sqlite3.connect(tmp_path / "roost.db")
    database.execute("DELETE FROM feed WHERE position < (SELECT max(position) FROM feed)")
    database.commit()
    database.close()
    code, output, _ = run("why", decision.uuid, "--data", tmp_path)
    assert code == 0
    assert "refused: 0 of 3 hosts: 3 lack 12 VCPU or more" in output
    assert "cannot be replayed" in output
    assert run("why", decision.uuid, "--replay", "--data", tmp_path)[0] == 4


def corrupt(folder, statement, *values):
    database = sqlite3.connect(folder / "roost.db")
    database.execute(statement, values)
    database.commit()
    database.close()


@pytest.mark.parametrize("body", [b"", b"\x00", b"\x90", b"\x92\x90\x90", "text"])
@pytest.mark.parametrize("table", ["decision", "document"])
@pytest.mark.parametrize("words", [("last",), ("last-refused", "--replay"), ("--summary",)])
def test_corrupt_evidence_is_an_error_of_one_sentence(run, folder, table, body, words):
    corrupt(folder, f"UPDATE {table} SET body = ?", body)
    code, output, error = run("why", *words, "--data", folder)
    assert (code, output) == (7, "")
    assert error.startswith("roost: the database is corrupt: ")
    assert error.count("\n") == 1


def test_decision_with_a_corrupt_feed_is_shown_without_explanation(run, folder):
    corrupt(folder, "UPDATE feed SET body = x'00'")
    code, output, _ = run("why", "last-refused", "--data", folder)
    assert code == 0
    assert "the stored state cannot be decoded" in output
    assert run("why", "last-refused", "--replay", "--data", folder)[0] == 4


def test_row_with_a_dangling_reference_is_a_clear_error(run, folder):
    corrupt(folder, "DELETE FROM provider")
    code, _, error = run("why", "last", "--data", folder)
    assert code == 7
    assert "a row names number 1, which is not there" in error


def test_decision_by_an_absent_rule_is_shown_without_explanation(run, tmp_path):
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        decision = roost.decide(LARGE)
    settings = msgspec.json.decode(roost.settings.body())
    settings["filter_scheduler"]["enabled_filters"] = ["gone"]
    corrupt(tmp_path, "UPDATE document SET body = ? WHERE id = ?", msgspec.json.encode(settings), decision.settings_id)
    code, output, _ = run("why", "last", "--data", tmp_path)
    assert code == 0
    assert "refused: 0 of 3 hosts: 3 lack 12 VCPU or more" in output
    assert output.splitlines()[-1].startswith(f"the settings of decision {decision.uuid}: ")
    code, _, error = run("why", "last", "--replay", "--data", tmp_path)
    assert code == 3
    assert error.startswith(f"roost: the settings of decision {decision.uuid}: ")


@pytest.mark.parametrize("moment", ["999999999w", "0001-01-01T00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_since_accepts_moments_beyond_the_calendar(run, folder, moment):
    code, output, _ = run("why", "--summary", "--since", moment, "--data", folder)
    assert code == 0
    assert output.splitlines()[0].endswith("s after 1970")


def test_names_cannot_forge_output_lines(run, tmp_path):
    name = "x\x1b[2J\ngranted: everything"
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        roost.decide(Request(flavor=Flavor(name=name, vcpus=12, memory_mb=64), project_id=name))
    for words in (("last",), ("--summary",)):
        output = run("why", *words, "--data", tmp_path)[1]
        assert "x\\x1b[2J\\ngranted: everything" in output
        assert "\x1b" not in output
        assert "\ngranted" not in output
    assert "\x1b" not in run("capacity", "--known-flavors", "--data", tmp_path)[1]
