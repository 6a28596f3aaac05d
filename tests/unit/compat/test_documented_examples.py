"""The plug-ins and settings printed in the founding documents, verbatim."""

import ast
import json
import logging
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from roost.compat import exception
from roost.compat.compute.provider_tree import ProviderTree
from roost.compat.scheduler.client.report import SchedulerReportClient
from tests.support.servers.plugin_site import OSLO, run_roost, write_files

# From the document on the filter scheduler: the sample package.
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
# A comma is missing after the description, as in the document.
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
# From the document on Icehouse's scheduler.
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
# The imports above such a class.
IMPORTS = """\
import nova.conf
from nova.scheduler import filters, weights

CONF = nova.conf.CONF


"""
DEFAULTS = """\
--filter_scheduler.available_filters=nova.scheduler.filters.all_filters
--filter_scheduler.enabled_filters=ComputeFilter,AvailabilityZoneFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter
"""
METRICS = """\
metrics_weight_setting = name1=1.0, name2=-1.0
"""
# In the syntax of Python, which is not JSON.
QUERY = """\
['and',
    ['>=', '$free_ram_mb', 1024],
    ['>=', '$free_disk_mb', 200 * 1024]
]"""
# From the document on reshapes: the reaction of the resource tracker.
RESHAPE = """\
try:
    self.driver.update_provider_tree(prov_tree, nodename)
except exception.ReshapeNeeded:
    if not startup:
        # This isn't supposed to happen during periodic, so raise
        # it up; the compute manager will treat it specially,
        # killing the compute service.
        raise
    LOG.info("Performing resource provider inventory and "
             "allocation data migration during compute service "
             "startup or FFU.")
    allocs = reportclient.get_allocations_for_provider_tree()
    self.driver.update_provider_tree(prov_tree, nodename,
                                     allocations=allocs)
"""
DECIDE = ("decide", "--fleet", "fleet.json", "--request", "request.json", "--nova-conf", "nova.conf")
LIBRARIES = pytest.mark.parametrize("hidden", [OSLO, ("nova",)], ids=["alone", "with the libraries of oslo"])


def small_request(**flavor: object) -> str:
    """Return a request for a small flavor, as JSON."""
    return json.dumps({"flavor": {"name": "f", "vcpus": 1, "memory_mb": 1, "extra_specs": flavor}})


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    """Install the sample package as users do, with its syntax error; return the folder."""
    folder = tmp_path_factory.mktemp("acme")
    write_files(
        folder,
        {
            "setup.py": ACME_SETUP,
            "acmefilter/__init__.py": ACME_INIT,
            "acmefilter/validators.py": ACME_VALIDATORS,
        },
    )
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
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (site / "acmefilter" / "validators.py").exists(), result.stderr
    return folder


@LIBRARIES
@pytest.mark.shows("S058", "S061")
def test_sample_package_filters_hosts_and_its_log_lines_appear(acme, hidden):
    fleet = '{"hosts": [{"host": "a"}, {"host": "b", "service": {"disabled": true}}]}'
    write_files(
        acme, {"nova.conf": ACME_CONF, "fleet.json": fleet, "request.json": small_request(**{"acme:foo": "bar"})}
    )
    result = run_roost(acme, *DECIDE, hidden=hidden)
    assert result.stdout.startswith("granted: a\n"), result.stderr
    assert re.search(r"^  AcmeFilter +1 -> +1 ", result.stdout, re.MULTILINE)
    line = '"level":"info","logger":"acmefilter","event":"plugin_log","message":"Extra spec value was \'bar\'"'
    assert line in result.stderr
    write_files(acme, {"nova.conf": ACME_CONF + "[scheduler]\nplugin_log_level = WARNING\n"})
    assert "plugin_log" not in run_roost(acme, *DECIDE, hidden=hidden).stderr


@pytest.mark.shows("S059", "S060")
def test_config_check_reports_the_missing_comma_in_one_sentence(acme):
    write_files(acme, {"nova.conf": ACME_CONF})
    result = run_roost(acme, "config", "check")
    problem = (
        "entry point nova.api.extra_spec_validators.acme: cannot be loaded: invalid syntax. Perhaps you forgot a comma?"
    )
    assert result.stdout.startswith(problem), result.stderr
    assert (result.returncode, "Traceback" in result.stderr) == (3, False)


@pytest.mark.shows("S059", "S063")
def test_corrected_validator_checks_the_extra_spec(acme, tmp_path):
    corrected = ACME_VALIDATORS.replace("extra spec.'", "extra spec.',")
    egg = next((acme / "site").glob("*.egg-info"))
    files = {f"site/{egg.name}/{each.name}": each.read_text(encoding="utf-8") for each in egg.iterdir()}
    write_files(
        tmp_path,
        files
        | {
            "site/acmefilter/__init__.py": ACME_INIT,
            "site/acmefilter/validators.py": corrected,
            "nova.conf": ACME_CONF,
            "fleet.json": '{"hosts": [{"host": "a"}]}',
            "request.json": small_request(**{"acme:foo": "qux"}),
        },
    )
    result = run_roost(tmp_path, *DECIDE)
    assert "the extra spec acme:foo='qux' is none of bar, baz" in result.stdout + result.stderr


@LIBRARIES
@pytest.mark.shows("S028", "S048")
def test_num_instances_filter_reads_its_limit_from_conf(tmp_path, hidden):
    conf = "[filter_scheduler]\navailable_filters = site_rules.NumInstancesFilter\n"
    conf += "enabled_filters = NumInstancesFilter\nmax_instances_per_host = 2\n"
    fleet = '{"hosts": [{"host": "a", "num_instances": 2}, {"host": "b", "num_instances": 1}]}'
    write_files(
        tmp_path,
        {
            "site_rules.py": IMPORTS + NUM_INSTANCES,
            "nova.conf": conf,
            "fleet.json": fleet,
            "request.json": small_request(),
        },
    )
    result = run_roost(tmp_path, *DECIDE, hidden=hidden)
    assert result.stdout.startswith("granted: b\n"), result.stderr
    assert re.search(r"^  NumInstancesFilter +2 -> +1 ", result.stdout, re.MULTILINE)


@LIBRARIES
@pytest.mark.shows("S053")
def test_icehouse_weigher_reads_its_multiplier_from_section_default(tmp_path, hidden):
    conf = "[DEFAULT]\nram_weight_multiplier = -1.0\n[filter_scheduler]\nenabled_filters = AllHostsFilter\n"
    fleet = '{"hosts": [{"host": "a", "free_ram_mb": 9000}, {"host": "b", "free_ram_mb": 8000}]}'
    write_files(
        tmp_path,
        {
            "site_rules.py": IMPORTS + RAM_WEIGHER,
            "fleet.json": fleet,
            "request.json": small_request(),
            "nova.conf": conf + "weight_classes = site_rules.RAMWeigher\n",
        },
    )
    assert run_roost(tmp_path, *DECIDE, hidden=hidden).stdout.startswith("granted: b\n")


@pytest.mark.shows("S188")
def test_once_per_request_filter_runs_once_for_each_host(tmp_path):
    source = (
        "import sys\n"
        + IMPORTS
        + (
            "class Once(filters.BaseHostFilter):\n"
            "    run_filter_once_per_request = True\n\n"
            "    def host_passes(self, host_state, spec_obj):\n"
            "        sys.stderr.write(f'judged {host_state.host}\\n')\n"
            "        host_state.limits['memory_mb'] = 7\n"
            "        return True\n"
        )
    )
    conf = "[filter_scheduler]\navailable_filters = site_rules.Once\nenabled_filters = Once\n"
    write_files(
        tmp_path,
        {
            "site_rules.py": source,
            "nova.conf": conf,
            "fleet.json": '{"hosts": [{"host": "a"}, {"host": "b"}]}',
            "request.json": '{"count": 3, "flavor": {"name": "f", "vcpus": 1, "memory_mb": 1}}',
        },
    )
    result = run_roost(tmp_path, *DECIDE)
    assert sorted(result.stderr.splitlines()) == ["judged a", "judged b"]
    assert result.stdout.startswith("granted: ")


@pytest.mark.shows("S082", "S083")
def test_printed_defaults_work_only_in_their_section(tmp_path):
    fleet = '{"hosts": [{"host": "a"}, {"host": "b", "service": {"disabled": true}}]}'
    write_files(tmp_path, {"nova.conf": DEFAULTS, "fleet.json": fleet, "request.json": small_request()})
    result = run_roost(tmp_path, *DECIDE)
    advice = "write [filter_scheduler] and below it available_filters = VALUE"
    assert result.stderr == f"roost: nova.conf:1: an option has no section; {advice}\n"
    write_files(tmp_path, {"nova.conf": "[filter_scheduler]\n" + DEFAULTS.replace("--filter_scheduler.", "")})
    result = run_roost(tmp_path, *DECIDE)
    assert result.stdout.startswith("granted: a\n"), result.stderr
    names = re.findall(r"^  ([a-z_]+) +\d+ -> ", result.stdout, re.MULTILINE)
    assert names[0] == "compute", result.stdout


@pytest.mark.shows("S090")
@pytest.mark.parametrize(("section", "first"), [("metrics", "a"), ("DEFAULT", "b")])
def test_metrics_option_of_the_document_works_only_in_section_metrics(tmp_path, section, first):
    metrics = '{"hosts": [{"host": "b", "metrics": {"name1": 1, "name2": 5}}, {"host": "a", "metrics": {"name1": 9}}]}'
    fleet = metrics.replace('"name1": 9', '"name1": 9, "name2": 1')
    conf = f"[filter_scheduler]\nenabled_filters = AllHostsFilter\n[{section}]\n{METRICS}"
    write_files(tmp_path, {"nova.conf": conf, "fleet.json": fleet, "request.json": small_request()})
    result = run_roost(tmp_path, *DECIDE)
    assert result.stdout.startswith(f"granted: {first}\n"), result.stderr
    message = "metrics_weight_setting has no effect: it is weight_setting in section [metrics]"
    assert (message in result.stderr) == (section == "DEFAULT")


@pytest.mark.shows("S025")
def test_query_of_the_document_is_refused_with_a_valid_form(tmp_path):
    conf = "[filter_scheduler]\nenabled_filters = JsonFilter\n"
    hosts = '{"hosts": [{"host": "a", "free_ram_mb": 2048, "free_disk_mb": 300000}, {"host": "b", "free_ram_mb": 512}]}'
    request = json.loads(small_request())
    write_files(
        tmp_path,
        {
            "nova.conf": conf,
            "fleet.json": hosts,
            "request.json": json.dumps({**request, "hints": {"query": QUERY}}),
        },
    )
    result = run_roost(tmp_path, *DECIDE)
    assert result.returncode != 0
    right = re.search(r"is not JSON, such as (.*)$", result.stderr)
    assert right is not None, result.stderr
    assert json.loads(right[1]) == ast.literal_eval(QUERY.replace("200 * 1024", "204800"))
    write_files(tmp_path, {"request.json": json.dumps({**request, "hints": {"query": right[1]}})})
    assert run_roost(tmp_path, *DECIDE).stdout.startswith("granted: a\n")


@pytest.mark.shows("S114", "S119")
@pytest.mark.parametrize("startup", [True, False])
def test_resource_tracker_of_the_document_runs_with_nova_names(startup):
    seen = []

    class Driver:
        def update_provider_tree(self, provider_tree, nodename, allocations=None):
            seen.append(allocations)
            if allocations is None:
                raise exception.ReshapeNeeded

    report = SchedulerReportClient(SimpleNamespace(get_allocations_for_provider_tree=lambda: {"c": {}}))
    names = {
        "self": SimpleNamespace(driver=Driver()),
        "prov_tree": ProviderTree(),
        "nodename": "n",
        "startup": startup,
        "exception": exception,
        "LOG": logging.getLogger("tracker"),
        "reportclient": report,
    }
    if startup:
        exec(RESHAPE, names)  # The text of the document.
        assert seen == [None, {"c": {}}]
    else:
        with pytest.raises(exception.ReshapeNeeded):
            exec(RESHAPE, names)
