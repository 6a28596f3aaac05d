"""The CONF that plug-ins read, and the options that they register, with oslo.config and without it."""

import os
import subprocess
import sys

import pytest

from roost.compat.oslo_config import cfg
from roost.errors import BadSettings
from roost.scheduler import filters, registry
from tests.support.servers.plugin_site import OSLO, run_roost, write_files

FLEET = '{"hosts": [{"host": "a", "num_io_ops": 3}, {"host": "b"}]}'
REQUEST = '{"flavor": {"name": "f", "vcpus": 1, "memory_mb": 1}}'
LIMITED = """
import nova.conf
from nova.scheduler import filters

CONF = nova.conf.CONF


class IoLimit(filters.BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return host_state.num_io_ops < CONF.filter_scheduler.max_io_ops_per_host
"""
OWN = """
from oslo_config import cfg
from nova.scheduler import filters

opts = [
    cfg.IntOpt("most", default=5, min=1, help="The most operations."),
    cfg.ListOpt("hosts", default=["a", "b"]),
    cfg.StrOpt("mode", default="all", choices=["all", "none"]),
    cfg.BoolOpt("strict", default=False),
    cfg.StrOpt("unset"),
    cfg.MultiStrOpt("rule", default=[]),
]
cfg.CONF.register_group(cfg.OptGroup("acme"))
cfg.CONF.register_opts(opts, group="acme")


class Own(filters.BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        acme = cfg.CONF.acme
        assert acme.unset is None
        assert "most" in acme
        assert acme.rule in ([], ["a, b", "c"])
        return host_state.host in acme.hosts and host_state.num_io_ops < acme.most and acme.mode == "all"
"""
ENABLED = "[filter_scheduler]\navailable_filters = plug.{name}\nenabled_filters = {name}\n"


def decide(folder, name, source, settings="", *, hidden=OSLO, words=("decide",)):
    """Run a command with one plug-in; ``settings`` are further lines of nova.conf."""
    files = {
        "plug.py": source,
        "nova.conf": ENABLED.format(name=name) + settings,
        "fleet.json": FLEET,
        "request.json": REQUEST,
    }
    write_files(folder, files)
    return run_roost(
        folder, *words, "--fleet", "fleet.json", "--request", "request.json", "--nova-conf", "nova.conf", hidden=hidden
    )


@pytest.mark.parametrize("hidden", [OSLO, ("nova",)], ids=["alone", "with oslo.config"])
def test_plugin_reads_settings_from_conf(tmp_path, hidden):
    result = decide(tmp_path, "IoLimit", LIMITED, "max_io_ops_per_host = 3\n", hidden=hidden)
    assert result.stdout.startswith("granted: b\n"), result.stderr
    assert "IoLimit                                2 ->       1" in result.stdout


@pytest.mark.parametrize("hidden", [OSLO, ("nova",)], ids=["alone", "with oslo.config"])
def test_plugin_registers_options_and_reads_them_from_nova_conf(tmp_path, hidden):
    assert "alternates: a" in decide(tmp_path, "Own", OWN, hidden=hidden).stdout
    result = decide(tmp_path, "Own", OWN, "[acme]\nmost = 3\nhosts = a, b\nrule = a, b\nrule = c\n", hidden=hidden)
    assert result.stdout.startswith("granted: b\n"), result.stderr
    assert "alternates" not in result.stdout
    assert "no effect" not in result.stderr


@pytest.mark.parametrize("hidden", [OSLO, ("nova",)], ids=["alone", "with oslo.config"])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("most = many", "nova.conf:5: acme.most: must be a whole number, got 'many'"),
        ("most = 0", "nova.conf:5: acme.most: "),
        ("mode = some", "nova.conf:5: acme.mode: "),
    ],
)
def test_invalid_value_of_a_plugin_option_is_one_sentence(tmp_path, hidden, line, problem):
    result = decide(tmp_path, "Own", OWN, f"[acme]\n{line}\n", hidden=hidden)
    assert result.returncode == 3
    assert result.stderr.startswith(f"roost: {problem}"), result.stderr
    assert result.stderr.count("\n") == 1


def test_plugin_options_are_read_from_the_settings_file_and_shown(tmp_path):
    text = '[filter_scheduler]\navailable_filters = ["plug.Own"]\nenabled_filters = ["Own"]\n[acme]\nmost = 3\n'
    write_files(tmp_path, {"plug.py": OWN, "roost.toml": text})
    result = run_roost(tmp_path, "config", "show", "--section", "acme")
    assert "acme.most    3" in result.stdout, result.stdout + result.stderr
    assert 'acme.hosts   ["a","b"]' in result.stdout
    write_files(tmp_path, {"roost.toml": text + "mots = 4\n"})
    output = run_roost(tmp_path, "config", "check").stdout
    assert "acme.mots: is not a setting; the nearest known name is most" in output


def test_options_of_other_libraries_are_not_settings(tmp_path):
    register = (
        "from oslo_config import cfg\ncfg.CONF.register_opts([cfg.StrOpt('left', default='x')], group='library')\n"
    )
    write_files(tmp_path, {"nova.conf": ENABLED.format(name="IoLimit"), "plug.py": LIMITED, "library.py": register})
    script = (
        "import library\n"
        "from pathlib import Path\n"
        "from roost.app import settings_with_sources\n"
        "for _ in range(2):\n"
        "    found = settings_with_sources(None, {'ROOST_NOVA_CONF': 'nova.conf'}).settings\n"
        "print(sorted(found.tables), 'shell_completion' in found.tables['DEFAULT'])\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    environ = os.environ | {"PYTHONPATH": path}
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert result.stdout == "['DEFAULT', 'filter_scheduler', 'metrics'] False\n", result.stderr


def test_conf_without_oslo_config_has_only_registered_options():
    conf = cfg.ConfigOpts()
    conf.settings = {"DEFAULT": {"my_ip": "::1"}, "acme": {"said": 7}}
    conf.register_opts([cfg.IntOpt("said"), cfg.StrOpt("free-name", default="x")], "acme")
    assert (conf.my_ip, conf.acme.said, conf["acme"]["free_name"]) == ("::1", 7, "x")
    assert (sorted(conf.acme), "acme" in conf, "my_ip" in conf) == (["free_name", "said"], True, True)
    assert not conf.register_opt(cfg.IntOpt("said"), "acme")
    for act in (lambda: conf.acme.color, lambda: conf.nowhere, lambda: conf.set_default("color", 1, "acme")):
        with pytest.raises(cfg.NoSuchOptError):
            act()
    with pytest.raises(cfg.DuplicateOptError):
        conf.register_opt(cfg.StrOpt("said"), "acme")
    with pytest.raises(cfg.Error, match="read-only"):
        conf.set_override("said", 8, "acme")
    conf.set_default("free_name", "y", group="acme")
    assert conf.acme.free_name == "y"


@pytest.mark.shows("S207")
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("iolimit", "class IoLimit: pass", "has no rule named iolimit; keep third-party rules in a package"),
        (
            "iobroken",
            "import nothing_of_this_name",
            "cannot be loaded: No module named 'nothing_of_this_name'; keep third-party rules",
        ),
    ],
)
def test_stray_file_among_the_filters_is_an_error_of_one_sentence(tmp_path, monkeypatch, name, text, problem):
    write_files(tmp_path, {f"{name}.py": text})
    monkeypatch.setattr(filters, "__path__", [str(tmp_path)])
    with pytest.raises(BadSettings, match=f"^roost.scheduler.filters.{name}: {problem}"):
        registry.builtin_filters()


def test_config_check_reports_validators_that_cannot_be_loaded(tmp_path):
    entry = "[nova.api.extra_spec_validators]\nacme = acme_validators\n"
    files = {
        "site/acme-1.dist-info/METADATA": "Name: acme\nVersion: 1\n",
        "site/acme-1.dist-info/entry_points.txt": entry,
        "site/acme_validators.py": "def register(:\n",
    }
    write_files(tmp_path, files)
    result = run_roost(tmp_path, "config", "check")
    assert result.returncode == 3
    expected = "entry point nova.api.extra_spec_validators.acme: cannot be loaded: invalid syntax"
    assert result.stdout.startswith(expected), result.stderr
