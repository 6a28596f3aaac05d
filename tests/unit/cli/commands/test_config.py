"""``roost config`` and ``--nova-conf`` as their users run them."""

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
    """Run a command in a folder with a nova.conf."""
    (tmp_path / "nova.conf").write_text(NOVA)

    def run(*words, **more):
        done = roost(*words, cwd=tmp_path, **more)
        return done.returncode, done.stdout, done.stderr

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
    assert error == "roost: nova.conf: of [DEFAULT] these have no effect: state_path\n"


def test_programs_get_json_of_what_is_set_or_of_a_section(run):
    shown = json.loads(run("config", "show", "--set", "--json", ROOST_NOVA_CONF="nova.conf")[1])
    assert [(line["section"], line["key"], line["value"], line["source"]) for line in shown] == [
        ("scheduler", "max_attempts", 5, "nova.conf:2"),
        ("filter_scheduler", "ram_weight_multiplier", -1.0, "nova.conf:5"),
        ("agent", "provider_config_location", "/etc/nova/provider_config/", "nova.conf, by default"),
    ]
    shown = json.loads(run("config", "show", "--section", "workarounds", "--json")[1])
    assert {line["section"] for line in shown} == {"workarounds"}


def test_check_prints_all_that_is_wrong(run, tmp_path):
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


def test_check_makes_the_rules(run, tmp_path):
    (tmp_path / "bad.py").write_text(
        "class Bad:\n    def __init__(self):\n        raise ValueError('no licence')\n"
        "    def host_passes(self, host_state, spec):\n        return True\n"
    )
    (tmp_path / "roost.toml").write_text(
        '[filter_scheduler]\navailable_filters = ["bad.Bad"]\nenabled_filters = ["Bad"]'
    )
    code, output, error = run("config", "check", PYTHONPATH=f"{tmp_path}:{ROOT / 'src'}")
    assert (code, output) == (3, "rule Bad: cannot be made: no licence\n")
    assert error == "roost: settings: 1 problem\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "roost: --nova-conf: there is no file nova.conf\n"),
        ("[metrics]\nrequired = x\n", "roost: nova.conf:2: metrics.required: must be true or false, got 'x'\n"),
    ],
)
def test_a_nova_conf_that_cannot_be_meant_ends_any_command_with_the_code_of_settings(run, tmp_path, text, told):
    (tmp_path / "nova.conf").unlink()
    if text is not None:
        (tmp_path / "nova.conf").write_text(text)
    for words in (("config", "show"), ("fleet", "export", "--data", "."), ("replay", "--generate", "--memory")):
        code, output, error = run(*words, "--nova-conf", "nova.conf")
        assert (code, output, error) == (3, "", told)


def test_an_existing_nova_conf_decides(run, tmp_path):
    (tmp_path / "f.json").write_text(
        json.dumps({"hosts": [{"host": "a", "free_ram_mb": 600}, {"host": "b", "free_ram_mb": 900}]})
    )
    (tmp_path / "r.json").write_text(json.dumps({"flavor": {"name": "small", "memory_mb": 512}}))
    words = ("decide", "--fleet", "f.json", "--request", "r.json")
    assert run(*words)[1].startswith("granted: b\n")
    assert run(*words, "--nova-conf", "nova.conf")[1].startswith("granted: a\n")


def test_a_replay_under_a_nova_conf_is_another_decision(run):
    data = ("--data", "d")
    generate = ("replay", "--generate", "--host-count", 9, "--requests", 3, *data)
    assert run(*generate)[0] == 0
    assert run("why", "last", "--replay", *data)[0] == 0
    code, _, error = run("why", "last", "--replay", "--nova-conf", "nova.conf", *data)
    assert (code, error) == (0, "roost: nova.conf: of [DEFAULT] these have no effect: state_path\n")
