"""A sample package with a filter and a validator, built and installed as users do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = """
from setuptools import setup

setup(
    name="acmefilter", version="0.1", description="Acme's filter", packages=["acmefilter"],
    entry_points={"nova.api.extra_spec_validators": ["acme = acmefilter.validators", "broken = acmefilter.missing"]},
)
"""
FILTER = '''
from nova.scheduler import filters


class AcmeFilter(filters.BaseHostFilter):
    """Keeps hosts for flavors that name the type of their hypervisor."""

    def host_passes(self, host_state, spec_obj):
        return spec_obj.flavor.extra_specs.get("acme:foo") in (None, host_state.hypervisor_type)
'''
VALIDATORS = """
from nova.api.validation.extra_specs import base


def register():
    return [
        base.ExtraSpecValidator(
            name="acme:foo",
            description="The type of hypervisor.",
            value={"type": str, "enum": ["QEMU", "xen"]},
        ),
    ]
"""
TESTS = """
import unittest

from roost.compat.aliases import install_aliases

install_aliases()

from acmefilter import AcmeFilter
from nova import objects
from nova.scheduler import host_manager
from roost.model.flavor import Flavor


class TestAcmeFilter(unittest.TestCase):
    def test_a_host_of_another_type_fails(self):
        host = host_manager.HostState("host", "node", hypervisor_type="xen")
        for wanted, passes in (("xen", True), ("QEMU", False)):
            spec = objects.RequestSpec(flavor=Flavor(name="f", extra_specs={"acme:foo": wanted}))
            self.assertIs(AcmeFilter().host_passes(host, spec), passes)
"""
SETTINGS = """
[filter_scheduler]
available_filters = ["nova.scheduler.filters.all_filters", "acmefilter.AcmeFilter"]
enabled_filters = ["ComputeFilter", "AcmeFilter"]
"""
FLEET = '{"hosts": [{"host": "a", "hypervisor_type": "xen"}, {"host": "b", "hypervisor_type": "QEMU"}]}'
REQUEST = '{"flavor": {"name": "f", "vcpus": 1, "memory_mb": 1, "extra_specs": {"acme:foo": "QEMU"}}}'
VALIDATE = """
import logging
logging.basicConfig(format="%(message)s")
from roost.compat.api.validation.extra_specs.validators import validate
from roost.compat.exception import ValidationError
for name, value in (("acme:foo", "QEMU"), ("acme:foo", "kvm"), ("acme:bar", "1"), ("hw:cpu_policy", "shared")):
    try:
        validate(name, value)
        print("accepted")
    except ValidationError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Install the package into a folder; return the folder."""
    source = tmp_path_factory.mktemp("acme")
    (source / "acmefilter").mkdir()
    files = {
        "setup.py": SETUP,
        "acmefilter/__init__.py": FILTER,
        "acmefilter/validators.py": VALIDATORS,
        "test_acme.py": TESTS,
        "roost.toml": SETTINGS,
        "fleet.json": FLEET,
        "request.json": REQUEST,
    }
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    site = source / "site"
    command = [sys.executable, "setup.py", "-q", "install_lib", "-d", site, "install_egg_info", "-d", site]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return site


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside the package's sources, with the package installed."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    return subprocess.run(
        [sys.executable, *arguments], cwd=site.parent, env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.shows("S058", "S061", "S207")
def test_filter_of_an_installed_package_can_be_enabled(site):
    arguments = (
        "-m",
        "roost",
        "decide",
        "--fleet",
        "fleet.json",
        "--request",
        "request.json",
        "--config",
        "roost.toml",
    )
    result = run(site, *arguments)
    assert result.stdout.startswith("granted: b\n"), result.stderr
    assert "AcmeFilter" in result.stdout


@pytest.mark.shows("S058", "S059", "S060", "S063")
def test_validators_of_a_package_are_loaded_and_broken_ones_are_logged(site):
    result = run(site, "-c", VALIDATE)
    assert result.stdout.splitlines() == [
        "accepted",
        "the extra spec acme:foo='kvm' is none of QEMU, xen",
        "there is no extra spec acme:bar",
        "accepted",
    ]
    assert result.stderr.startswith("the extra spec validators of broken cannot be loaded: ")


@pytest.mark.shows("S057")
def test_package_can_test_its_filter_with_host_states(site):
    result = run(site, "-m", "unittest", "-q", "test_acme")
    assert result.returncode == 0, result.stderr
    assert "Ran 1 test" in result.stderr
