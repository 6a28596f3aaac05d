import subprocess
import sys

import numpy as np
import pytest

from roost.compat.adapter import adapt
from roost.compat.scheduler.filters import BaseHostFilter
from roost.compat.scheduler.weights import BaseHostWeigher
from roost.engine.columns.apply import apply
from roost.model.host import HostFacts
from roost.model.writes import Claim, ConsumerRow, InstanceRow
from roost.scheduler.framework.plugin import NoOptions, SupportsLimits, implements
from tests.support.fleets.fleets import fleet, group, host_view, hosts, spec, uuid_of, uuid_text


class AcmeFilter(BaseHostFilter):
    """Keeps hosts with the free memory that the flavor requires."""

    RUN_ON_REBUILD = True

    def host_passes(self, host_state, spec_obj):
        """Compare a column with an extra spec."""
        return host_state.free_ram_mb >= int(spec_obj.flavor.extra_specs.get("acme:foo", "0"))


class AcmeWeigher(BaseHostWeigher):
    """Prefers few instances."""

    minval = -5.0

    def weight_multiplier(self, host_state):
        """Return three."""
        return 3.0

    def _weigh_object(self, host_state, weight_properties):
        return -host_state.num_instances


class Bare:
    """A filter without a base class."""

    def host_passes(self, host_state, spec_obj):
        """Read every kind of fact."""
        assert spec_obj.get_scheduler_hint("x") == "y"
        assert not hasattr(host_state, "nonsense")
        assert list(host_state.metrics) == []
        host_state.limits["memory_mb"] = 1
        in_ssd = any(each.metadata.get("ssd") == "yes" for each in host_state.aggregates)
        return in_ssd and not host_state.instances and host_state.cpu_info == '{"arch": "x"}'


def rule_of(kind):
    return adapt(kind)(NoOptions())


@pytest.mark.shows("S009")
def test_numeric_limits_of_a_nova_filter_reach_the_chosen_hosts():
    class Bounded(BaseHostFilter):
        def host_passes(self, host_state, spec_obj):
            host_state.limits.update(vcpu=2 * host_state.num_instances, numa_topology=object())
            return True

    rule = rule_of(Bounded)
    assert implements(rule, SupportsLimits)
    assert rule.limits(hosts(num_instances=[1, 3]), spec()) == [{"vcpu": 2.0}, {"vcpu": 6.0}]


@pytest.mark.shows("S046", "S047")
def test_nova_filter_becomes_a_rule():
    rule = rule_of(AcmeFilter)
    wanted = spec({"acme:foo": "20"})
    assert rule.keep(hosts(free_ram_mb=[10, 20, 30]), wanted).tolist() == [False, True, True]
    assert (rule.name, rule.nova_name, rule.run_on_rebuild) == ("AcmeFilter", "AcmeFilter", True)
    assert rule.reason(wanted) == "do not pass AcmeFilter"
    assert (rule.reads(wanted), rule.concerns(wanted)) == ("use", True)


@pytest.mark.shows("S007", "S050")
def test_filter_may_read_aggregates_instances_and_facts():
    facts = HostFacts(cpu_info={"arch": "x"})
    state = fleet(facts, facts, facts, HostFacts(), aggregates=[({"ssd": "yes"}, [0, 1, 3])])
    apply(state, Claim([ConsumerRow(1, uuid_of(7), "", "")], [], [InstanceRow(1, 102, 0)]))
    assert rule_of(Bare).keep(host_view(state), spec(hints={"x": ["y"]})).tolist() == [True, False, False, False]


def test_filter_sees_hosts_and_members_of_the_server_group():
    seen = []

    class Nosy(BaseHostFilter):
        def host_passes(self, host_state, spec_obj):
            seen.append(spec_obj.instance_group)
            return True

    state = fleet(HostFacts(), HostFacts())
    members = group("affinity", {1: 1})
    state.groups[1] = members
    apply(state, Claim([ConsumerRow(1, uuid_of(7), "", "")], [], [InstanceRow(1, 102, 0, group_id=1)]))
    assert rule_of(Nosy).keep(host_view(state), spec(group=members)).all()
    assert (seen[0].policies, seen[0].hosts, seen[0].members) == (["affinity"], ["host-2"], [uuid_text(7)])


@pytest.mark.shows("S053", "S054")
def test_nova_weigher_becomes_a_rule():
    rule = rule_of(AcmeWeigher)
    assert rule.raw(hosts(num_instances=[0, 3, 9]), spec()).tolist() == [0.0, -3.0, -5.0]
    assert (rule.multiplier, rule.minval, rule.maxval) == (3.0, -5.0, None)


@pytest.mark.shows("S054")
@pytest.mark.parametrize("name", ["_weigh_object", "_weight_object"])
def test_weigher_needs_no_base_class(name):
    kind = type("Plain", (), {name: lambda _self, host_state, _request: host_state.num_io_ops})
    rule = rule_of(kind)
    assert rule.raw(hosts(num_io_ops=[1, 2]), spec()).tolist() == [1.0, 2.0]
    assert rule.multiplier == 1.0


@pytest.mark.shows("S055")
def test_weigher_may_read_all_hosts_together():
    for name in ("weigh_objects", "weight_objects"):
        kind = type("All", (BaseHostWeigher,), {name: lambda _self, hosts, _request: list(range(len(hosts)))})
        np.testing.assert_array_equal(rule_of(kind).raw(hosts(num_io_ops=[5, 5]), spec()), [0.0, 1.0])


def test_class_of_another_kind_is_not_a_rule():
    assert adapt(dict) is None


ACME = """
from nova.scheduler import filters

class AcmeFilter(filters.BaseHostFilter):
    def host_passes(self, host_state, spec_obj):
        return spec_obj.flavor.extra_specs.get("acme:foo") == "bar"
"""
USE = """
import sys
from roost.compat.adapter import adapt
from roost.compat.aliases import install_aliases
from roost.settings import read_settings
from roost.scheduler.registry import build
install_aliases()
install_aliases()
text = '''[filter_scheduler]
available_filters = ["nova.scheduler.filters.all_filters", "acmefilter.AcmeFilter"]
enabled_filters = ["ComputeFilter", "AcmeFilter"]'''
rules = build(read_settings(text, adapt=adapt), adapt=adapt)
import nova.scheduler.filters
print([rule.name for rule in rules.filters], sys.modules["nova.scheduler.filters"].__name__)
try:
    import nova.cmd
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.shows("S044", "S207")
def test_an_external_package_that_imports_nova_works_without_nova(tmp_path):
    (tmp_path / "acmefilter.py").write_text(ACME, encoding="utf-8")
    command = [sys.executable, "-c", USE]
    path = [str(tmp_path), *sys.path]
    run = subprocess.run(command, env={"PYTHONPATH": ":".join(path)}, capture_output=True, text=True, check=False)
    assert run.stdout == "['compute', 'AcmeFilter'] roost.compat.scheduler.filters\nNo module named 'nova.cmd'\n", (
        run.stderr
    )


WHERE = {
    "nova.scheduler.manager": "SchedulerManager",
    "nova.scheduler.driver": "Scheduler",
    "nova.scheduler.chance": "ChanceScheduler",
    "nova.scheduler.filter_scheduler": "FilterScheduler",
    "nova.scheduler.caching_scheduler": "CachingScheduler",
    "nova.scheduler.filters.ram_filter": "RamFilter",
    "nova.scheduler.weights": "RAMWeigher",
}


@pytest.mark.shows("S182")
def test_modules_are_importable_from_their_packages_as_in_openstack():
    script = """
from roost.compat.aliases import install_aliases
install_aliases()
from nova.scheduler import manager, utils
import nova.scheduler.utils
from nova.scheduler.filters import utils as filter_utils
from nova.api.validation.extra_specs import base
from oslo_utils import timeutils
assert nova.scheduler.utils is utils
assert filter_utils.validate_num_values({"1"}) == 1
print(manager.SchedulerManager.__name__, base.ExtraSpecValidator.__name__, timeutils.utcnow().tzinfo)
"""
    environ = {"PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert run.stdout == "SchedulerManager ExtraSpecValidator None\n", run.stderr


@pytest.mark.shows("S218")
def test_each_class_is_importable_from_its_nova_module():
    lines = [f"from {module} import {name}; print({name}.__name__)" for module, name in WHERE.items()]
    script = "\n".join(["from roost.compat.aliases import install_aliases", "install_aliases()", *lines])
    environ = {"PYTHONPATH": ":".join(sys.path)}
    run = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=False)
    assert run.stdout.split() == list(WHERE.values()), run.stderr
