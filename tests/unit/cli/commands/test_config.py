"""``roost config`` and ``--nova-conf`` as users run them."""

import json

import pytest

from tests.support.fleets.products import ROOT, roost

NOVA = """[DEFAULT]
scheduler_max_attempts = 5
state_path = /var/lib/nova
[filter_scheduler]
ram_weight_multiplier = -1.0
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a command in a folder with a nova.conf."""
    (tmp_path / "nova.conf").write_text(NOVA)

    def run(*words, **more):
        result = roost(*words, cwd=tmp_path, **more)
        return result.returncode, result.stdout, result.stderr

    return run


def test_every_setting_is_shown_with_its_source(run, tmp_path):
    (tmp_path / "roost.toml").write_text('[store]\nurl = "postgresql://u:secret@h/d"\n')
    code, output, error = run("config", "show", "--nova-conf", "nova.conf")
    lines = [line.split(maxsplit=2) for line in output.splitlines()]
    assert code == 0
    assert ["scheduler.max_attempts", "5", "nova.conf:2"] in lines
    assert ["filter_scheduler.ram_weight_multiplier", "-1.0", "nova.conf:5"] in lines
    assert ["scheduler.claim_rounds", "3", "default"] in lines
    assert ["store.url", '"postgresql://u:***@h/d"', "roost.toml:2"] in lines
    assert "secret" not in output
    assert error == "roost: nova.conf: these options of [DEFAULT] have no effect: state_path\n"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:se@cret@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql://h/d?user=u&password=secret&port=1", "postgresql://h/d?user=u&password=***&port=1"),
        ("postgresql://h:5432/d?application_name=a@b", "postgresql://h:5432/d?application_name=a@b"),
    ],
)
def test_password_of_a_url_is_masked(run, tmp_path, url, shown):
    (tmp_path / "roost.toml").write_text(f'[store]\nurl = "{url}"\n')
    (line,) = json.loads(run("config", "show", "--set", "--json")[1])
    assert line["value"] == shown


def test_json_shows_settings_from_files_or_one_section(run):
    lines = json.loads(run("config", "show", "--set", "--json", ROOST_NOVA_CONF="nova.conf")[1])
    assert [(line["section"], line["key"], line["value"], line["source"]) for line in lines] == [
        ("scheduler", "max_attempts", 5, "nova.conf:2"),
        ("filter_scheduler", "ram_weight_multiplier", -1.0, "nova.conf:5"),
        ("agent", "provider_config_location", "/etc/nova/provider_config/", "nova.conf, by default"),
    ]
    lines = json.loads(run("config", "show", "--section", "workarounds", "--json")[1])
    assert {line["section"] for line in lines} == {"workarounds"}


def test_check_prints_every_problem(run, tmp_path):
    assert run("config", "check")[:2] == (0, "no errors: files set 0 settings, the others have their defaults\n")
    (tmp_path / "roost.toml").write_text("[scheduler]\nmax_attempt = 1\nclaim_rounds = 0\n")
    code, output, error = run("config", "check")
    assert code == 3
    assert output.splitlines() == [
        "roost.toml: scheduler.claim_rounds: must be 1 or more, got 0",
        "roost.toml: scheduler.max_attempt: is not a setting; the nearest known name is max_attempts",
    ]
    assert error == "roost: settings: 2 problems\n"
    code, output, _ = run("config", "check", "--json")
    assert (code, len(json.loads(output))) == (3, 2)


def test_check_instantiates_the_rules(run, tmp_path):
    (tmp_path / "bad.py").write_text(
        "class Bad:\n    def __init__(self):\n        raise ValueError('no licence')\n"
        "    def host_passes(self, host_state, spec):\n        return True\n"
    )
    (tmp_path / "roost.toml").write_text(
        '[filter_scheduler]\navailable_filters = ["bad.Bad"]\nenabled_filters = ["Bad"]'
    )
    code, output, error = run("config", "check", PYTHONPATH=f"{tmp_path}:{ROOT / 'src'}")
    assert (code, output) == (3, "rule Bad: cannot be created: no licence\n")
    assert error == "roost: settings: 1 problem\n"


@pytest.mark.parametrize(
    ("text", "exit_code", "message"),
    [
        (None, 4, "roost: --nova-conf: nova.conf cannot be read: No such file or directory; correct the path\n"),
        ("[metrics]\nrequired = x\n", 3, "roost: nova.conf:2: metrics.required: must be true or false, got 'x'\n"),
    ],
)
def test_unusable_nova_conf_ends_any_command(run, tmp_path, text, exit_code, message):
    (tmp_path / "nova.conf").unlink()
    if text is not None:
        (tmp_path / "nova.conf").write_text(text)
    for words in (("config", "show"), ("fleet", "export", "--data", "."), ("replay", "--generate", "--memory")):
        code, output, error = run(*words, "--nova-conf", "nova.conf")
        assert (code, output, error) == (exit_code, "", message)


def test_nova_conf_affects_the_decision(run, tmp_path):
    (tmp_path / "f.json").write_text(
        json.dumps({"hosts": [{"host": "a", "free_ram_mb": 600}, {"host": "b", "free_ram_mb": 900}]})
    )
    (tmp_path / "r.json").write_text(json.dumps({"flavor": {"name": "small", "memory_mb": 512}}))
    words = ("decide", "--fleet", "f.json", "--request", "r.json")
    assert run(*words)[1].startswith("granted: b\n")
    assert run(*words, "--nova-conf", "nova.conf")[1].startswith("granted: a\n")


def test_replay_of_a_decision_reads_the_nova_conf(run):
    data = ("--data", "d")
    generate = ("replay", "--generate", "--host-count", 9, "--requests", 3, *data)
    assert run(*generate)[0] == 0
    assert run("why", "last", "--replay", *data)[0] == 0
    code, _, error = run("why", "last", "--replay", "--nova-conf", "nova.conf", *data)
    assert (code, error) == (0, "roost: nova.conf: these options of [DEFAULT] have no effect: state_path\n")


def test_unknown_section_is_an_error_with_a_suggestion(run):
    assert run("config", "show", "--section", "schedular") == (
        4,
        "",
        "roost: no such section: schedular; did you mean 'scheduler'?\n",
    )
    assert "; the sections are " in run("config", "show", "--section", "nosuch")[2]
