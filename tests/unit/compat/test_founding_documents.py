"""The plug-ins and settings that the founding documents print, word for word."""

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
from tests.support.servers.plugin_site import OSLO, run_roost, write

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
DEFAULTS = """\
--filter_scheduler.available_filters=nova.scheduler.filters.all_filters
--filter_scheduler.enabled_filters=ComputeFilter,AvailabilityZoneFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter
"""
METRICS = """\
metrics_weight_setting = name1=1.0, name2=-1.0
"""
# As Python writes it, so that it is no JSON.
QUERY = """\
['and',
    ['>=', '$free_ram_mb', 1024],
    ['>=', '$free_disk_mb', 200 * 1024]
]"""
# Of the document on reshapes: how the resource tracker goes on.
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


def asked(**flavor: object) -> str:
    """Give a request for a small flavor."""
    return json.dumps({"flavor": {"name": "f", "vcpus": 1, "memory_mb": 1, "extra_specs": flavor}})


@pytest.fixture(scope="module")
def acme(tmp_path_factory):
    """Install the sample package as users do, and give the folder; the missing comma is still missing."""
    folder = tmp_path_factory.mktemp("acme")
    write(
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
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (site / "acmefilter" / "validators.py").exists(), done.stderr
    return folder


@LIBRARIES
@pytest.mark.shows("S058", "S061")
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
    write(
        tmp_path,
        files
        | {
            "site/acmefilter/__init__.py": ACME_INIT,
            "site/acmefilter/validators.py": mended,
            "nova.conf": ACME_CONF,
            "fleet.json": '{"hosts": [{"host": "a"}]}',
            "request.json": asked(**{"acme:foo": "qux"}),
        },
    )
    done = run_roost(tmp_path, *DECIDE)
    assert "the extra spec acme:foo='qux' is none of bar, baz" in done.stdout + done.stderr


@LIBRARIES
@pytest.mark.shows("S028", "S048")
def test_the_filter_of_instances_reads_its_limit_from_conf(tmp_path, hidden):
    conf = "[filter_scheduler]\navailable_filters = site_rules.NumInstancesFilter\n"
    conf += "enabled_filters = NumInstancesFilter\nmax_instances_per_host = 2\n"
    fleet = '{"hosts": [{"host": "a", "num_instances": 2}, {"host": "b", "num_instances": 1}]}'
    write(
        tmp_path,
        {
            "site_rules.py": IMPORTS + NUM_INSTANCES,
            "nova.conf": conf,
            "fleet.json": fleet,
            "request.json": asked(),
        },
    )
    done = run_roost(tmp_path, *DECIDE, hidden=hidden)
    assert done.stdout.startswith("granted: b\n"), done.stderr
    assert re.search(r"^  NumInstancesFilter +2 -> +1 ", done.stdout, re.MULTILINE)


@LIBRARIES
@pytest.mark.shows("S053")
def test_a_weigher_of_icehouse_reads_its_multiplier_where_icehouse_had_it(tmp_path, hidden):
    conf = "[DEFAULT]\nram_weight_multiplier = -1.0\n[filter_scheduler]\nenabled_filters = AllHostsFilter\n"
    fleet = '{"hosts": [{"host": "a", "free_ram_mb": 9000}, {"host": "b", "free_ram_mb": 8000}]}'
    write(
        tmp_path,
        {
            "site_rules.py": IMPORTS + RAM_WEIGHER,
            "fleet.json": fleet,
            "request.json": asked(),
            "nova.conf": conf + "weight_classes = site_rules.RAMWeigher\n",
        },
    )
    assert run_roost(tmp_path, *DECIDE, hidden=hidden).stdout.startswith("granted: b\n")


@pytest.mark.shows("S188")
def test_a_filter_that_runs_once_per_request_judges_each_host_once(tmp_path):
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
    write(
        tmp_path,
        {
            "site_rules.py": source,
            "nova.conf": conf,
            "fleet.json": '{"hosts": [{"host": "a"}, {"host": "b"}]}',
            "request.json": '{"count": 3, "flavor": {"name": "f", "vcpus": 1, "memory_mb": 1}}',
        },
    )
    done = run_roost(tmp_path, *DECIDE)
    assert sorted(done.stderr.splitlines()) == ["judged a", "judged b"]
    assert done.stdout.startswith("granted: ")


@pytest.mark.shows("S082", "S083")
def test_the_defaults_of_nova_conf_need_their_section_and_then_work(tmp_path):
    fleet = '{"hosts": [{"host": "a"}, {"host": "b", "service": {"disabled": true}}]}'
    write(tmp_path, {"nova.conf": DEFAULTS, "fleet.json": fleet, "request.json": asked()})
    done = run_roost(tmp_path, *DECIDE)
    advice = "write [filter_scheduler] and below it available_filters = VALUE"
    assert done.stderr == f"roost: nova.conf:1: an option has no section; {advice}\n"
    write(tmp_path, {"nova.conf": "[filter_scheduler]\n" + DEFAULTS.replace("--filter_scheduler.", "")})
    done = run_roost(tmp_path, *DECIDE)
    assert done.stdout.startswith("granted: a\n"), done.stderr
    names = re.findall(r"^  ([a-z_]+) +\d+ -> ", done.stdout, re.MULTILINE)
    assert names[0] == "compute", done.stdout


@pytest.mark.shows("S090")
@pytest.mark.parametrize(("section", "first"), [("metrics", "a"), ("DEFAULT", "b")])
def test_metrics_are_weighed_as_the_document_names_the_option(tmp_path, section, first):
    metrics = '{"hosts": [{"host": "b", "metrics": {"name1": 1, "name2": 5}}, {"host": "a", "metrics": {"name1": 9}}]}'
    fleet = metrics.replace('"name1": 9', '"name1": 9, "name2": 1')
    conf = f"[filter_scheduler]\nenabled_filters = AllHostsFilter\n[{section}]\n{METRICS}"
    write(tmp_path, {"nova.conf": conf, "fleet.json": fleet, "request.json": asked()})
    done = run_roost(tmp_path, *DECIDE)
    assert done.stdout.startswith(f"granted: {first}\n"), done.stderr
    told = "metrics_weight_setting has no effect: it is weight_setting of the section [metrics]"
    assert (told in done.stderr) == (section == "DEFAULT")


@pytest.mark.shows("S025")
def test_the_query_of_the_document_is_refused_with_its_right_form_which_works(tmp_path):
    conf = "[filter_scheduler]\nenabled_filters = JsonFilter\n"
    hosts = '{"hosts": [{"host": "a", "free_ram_mb": 2048, "free_disk_mb": 300000}, {"host": "b", "free_ram_mb": 512}]}'
    request = json.loads(asked())
    write(
        tmp_path,
        {
            "nova.conf": conf,
            "fleet.json": hosts,
            "request.json": json.dumps({**request, "hints": {"query": QUERY}}),
        },
    )
    done = run_roost(tmp_path, *DECIDE)
    assert done.returncode != 0
    right = re.search(r"is not JSON, such as (.*)$", done.stderr)
    assert right is not None, done.stderr
    assert json.loads(right[1]) == ast.literal_eval(QUERY.replace("200 * 1024", "204800"))
    write(tmp_path, {"request.json": json.dumps({**request, "hints": {"query": right[1]}})})
    assert run_roost(tmp_path, *DECIDE).stdout.startswith("granted: a\n")


@pytest.mark.shows("S114", "S119")
@pytest.mark.parametrize("startup", [True, False])
def test_the_resource_tracker_of_the_document_runs_with_nova_s_names(startup):
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
        exec(RESHAPE, names)  # The document's own text.
        assert seen == [None, {"c": {}}]
    else:
        with pytest.raises(exception.ReshapeNeeded):
            exec(RESHAPE, names)
