"""The plug-ins and settings that the founding documents print, word for word."""

import json
import re
import subprocess
import sys

import pytest

from tests.plugin_site import OSLO, run_roost, write

# Of the document on the filter scheduler: the sample package.
ACME_INIT = """\
from oslo_log import log as logging
from nova.scheduler import filters

LOG = logging.getLogger(__name__)

class AcmeFilter(filters.BaseHostFilter):

    def host_passes(self, host_state, spec_obj):
        extra_spec = spec_obj.flavor.extra_specs.get('acme:foo')
        LOG.info("Extra spec value was '%s'", extra_spec)

        # do meaningful stuff here...

        return True
"""
# A comma is missing behind the description, as in the document.
ACME_VALIDATORS = """\
from nova.api.validation.extra_specs import base

def register():
    validators = [
        base.ExtraSpecValidator(
            name='acme:foo',
            description='My custom extra spec.'
            value={
                'type': str,
                'enum': [
                    'bar',
                    'baz',
                ],
            },
        ),
    ]

    return validators
"""
ACME_SETUP = """\
from setuptools import setup

setup(
    name='acmefilter',
    version='0.1',
    description='My custom filter',
    packages=[
        'acmefilter'
    ],
    entry_points={
        'nova.api.extra_spec_validators': [
            'acme = acmefilter.validators',
        ],
    },
)
"""
ACME_CONF = """\
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = acmefilter.AcmeFilter
enabled_filters = ComputeFilter,AcmeFilter
"""
NUM_INSTANCES = '''\
class NumInstancesFilter(filters.BaseHostFilter):
    """Filter out hosts with too many instances."""

    def _get_max_instances_per_host(self, host_state, spec_obj):
        return CONF.filter_scheduler.max_instances_per_host

    def host_passes(self, host_state, spec_obj):
        num_instances = host_state.num_instances
        max_instances = self._get_max_instances_per_host(host_state, spec_obj)
        passes = num_instances < max_instances
        return passes
'''
# Of the document on Icehouse's scheduler.
RAM_WEIGHER = '''\
class RAMWeigher(weights.BaseHostWeigher):
    minval = 0

    def weight_multiplier(self):
        """Override the weight multiplier."""
        return CONF.ram_weight_multiplier

    def _weigh_object(self, host_state, weight_properties):
        """Higher weights win.  We want spreading to be the default."""
        return host_state.free_ram_mb
'''
# What a module has above such a class.
IMPORTS = """\
import nova.conf
from nova.scheduler import filters, weights

CONF = nova.conf.CONF


"""
DECIDE = ("decide", "--fleet", "fleet.json", "--request", "request.json", "--nova-conf", "nova.conf")
LIBRARIES = pytest.mark.parametrize("hidden", [OSLO, ("nova",)], ids=["alone", "with the libraries of oslo"])


def asked(**flavor: object) -> str:
    """Give a request for a small flavor."""
    return json.dumps({"flavor": {"name": "f", "vcpus": 1, "memory_mb": 1, "extra_specs": flavor}})


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    """Install the sample package as users do, and give the folder; the missing comma is still missing."""
    folder = tmp_path_factory.mktemp("acme")
    write(folder, {
        "setup.py": ACME_SETUP, "acmefilter/__init__.py": ACME_INIT, "acmefilter/validators.py": ACME_VALIDATORS,
    })  # fmt: skip
    site = folder / "site"
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "install_lib",
        "--no-compile",
        "-d",
        site,
        "install_egg_info",
        "-d",
        site,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (site / "acmefilter" / "validators.py").exists(), done.stderr
    return folder


@LIBRARIES
@pytest.mark.shows("S058", "S062", "S064")
def test_the_sample_package_filters_and_its_log_lines_are_seen(acme, hidden):
    fleet = '{"hosts": [{"host": "a"}, {"host": "b", "service": {"disabled": true}}]}'
    write(acme, {"nova.conf": ACME_CONF, "fleet.json": fleet, "request.json": asked(**{"acme:foo": "bar"})})
    done = run_roost(acme, *DECIDE, hidden=hidden)
    assert done.stdout.startswith("granted: a\n"), done.stderr
    assert re.search(r"^  AcmeFilter +1 -> +1 ", done.stdout, re.MULTILINE)
    line = '"event":"plugin_log","logger":"acmefilter","level":"INFO","message":"Extra spec value was \'bar\'"'
    assert line in done.stderr
    write(acme, {"nova.conf": ACME_CONF + "[scheduler]\nplugin_log_level = WARNING\n"})
    assert "plugin_log" not in run_roost(acme, *DECIDE, hidden=hidden).stderr


@pytest.mark.shows("S059", "S060")
def test_the_missing_comma_is_one_sentence_and_config_check_finds_it(acme):
    write(acme, {"nova.conf": ACME_CONF})
    done = run_roost(acme, "config", "check")
    problem = (
        "entry point nova.api.extra_spec_validators.acme: cannot be loaded: invalid syntax. Perhaps you forgot a comma?"
    )
    assert done.stdout.startswith(problem), done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)


@pytest.mark.shows("S059", "S063")
def test_with_the_comma_the_validator_looks_at_the_extra_spec(acme, tmp_path):
    mended = ACME_VALIDATORS.replace("extra spec.'", "extra spec.',")
    egg = next((acme / "site").glob("*.egg-info"))
    files = {f"site/{egg.name}/{each.name}": each.read_text(encoding="utf-8") for each in egg.iterdir()}
    write(tmp_path, files | {
        "site/acmefilter/__init__.py": ACME_INIT, "site/acmefilter/validators.py": mended, "nova.conf": ACME_CONF,
        "fleet.json": '{"hosts": [{"host": "a"}]}', "request.json": asked(**{"acme:foo": "qux"}),
    })  # fmt: skip
    done = run_roost(tmp_path, *DECIDE)
    assert "the extra spec acme:foo='qux' is none of bar, baz" in done.stdout + done.stderr


@LIBRARIES
@pytest.mark.shows("S006", "S027")
def test_the_filter_of_instances_reads_its_limit_from_conf(tmp_path, hidden):
    conf = "[filter_scheduler]\navailable_filters = site_rules.NumInstancesFilter\n"
    conf += "enabled_filters = NumInstancesFilter\nmax_instances_per_host = 2\n"
    fleet = '{"hosts": [{"host": "a", "num_instances": 2}, {"host": "b", "num_instances": 1}]}'
    write(tmp_path, {
        "site_rules.py": IMPORTS + NUM_INSTANCES, "nova.conf": conf, "fleet.json": fleet, "request.json": asked(),
    })  # fmt: skip
    done = run_roost(tmp_path, *DECIDE, hidden=hidden)
    assert done.stdout.startswith("granted: b\n"), done.stderr
    assert re.search(r"^  NumInstancesFilter +2 -> +1 ", done.stdout, re.MULTILINE)


@LIBRARIES
@pytest.mark.shows("S191")
def test_a_weigher_of_icehouse_reads_its_multiplier_where_icehouse_had_it(tmp_path, hidden):
    conf = "[DEFAULT]\nram_weight_multiplier = -1.0\n[filter_scheduler]\nenabled_filters = AllHostsFilter\n"
    fleet = '{"hosts": [{"host": "a", "free_ram_mb": 9000}, {"host": "b", "free_ram_mb": 8000}]}'
    write(tmp_path, {
        "site_rules.py": IMPORTS + RAM_WEIGHER, "fleet.json": fleet, "request.json": asked(),
        "nova.conf": conf + "weight_classes = site_rules.RAMWeigher\n",
    })  # fmt: skip
    assert run_roost(tmp_path, *DECIDE, hidden=hidden).stdout.startswith("granted: b\n")


@pytest.mark.shows("S188")
def test_a_filter_that_runs_once_per_request_judges_each_host_once(tmp_path):
    source = "import sys\n" + IMPORTS + (
        "class Once(filters.BaseHostFilter):\n"
        "    run_filter_once_per_request = True\n\n"
        "    def host_passes(self, host_state, spec_obj):\n"
        "        sys.stderr.write(f'judged {host_state.host}\\n')\n"
        "        host_state.limits['memory_mb'] = 7\n"
        "        return True\n"
    )  # fmt: skip
    conf = "[filter_scheduler]\navailable_filters = site_rules.Once\nenabled_filters = Once\n"
    write(tmp_path, {
        "site_rules.py": source, "nova.conf": conf, "fleet.json": '{"hosts": [{"host": "a"}, {"host": "b"}]}',
        "request.json": '{"count": 3, "flavor": {"name": "f", "vcpus": 1, "memory_mb": 1}}',
    })  # fmt: skip
    done = run_roost(tmp_path, *DECIDE)
    assert sorted(done.stderr.splitlines()) == ["judged a", "judged b"]
    assert done.stdout.startswith("granted: ")
