"""Small modules of Nova: filters and weighers by module, fields, errors, operators, helpers."""

import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

from roost.compat import exception, netaddr
from roost.compat.adapter import adapt
from roost.compat.objects import Flavor, RequestSpec, fields
from roost.compat.oslo_log import log
from roost.compat.oslo_serialization import jsonutils
from roost.compat.oslo_utils import strutils, timeutils, versionutils
from roost.compat.scheduler import filters, weights
from roost.compat.scheduler import rule_inputs as utils
from roost.compat.scheduler.client.report import SchedulerReportClient
from roost.compat.scheduler.filters import extra_specs_ops
from roost.compat.scheduler.filters.aggregate_values import instance_uuids_overlap, validate_num_values
from roost.compat.scheduler.host_state import HostAggregate, HostState
from roost.compat.scheduler.module_table import FILTER_MODULES, WEIGHER_MODULES
from roost.compat.virt import hardware
from roost.errors import ReshapeFailed, ReshapeNeeded
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.host import HostFacts
from roost.model.request import Request
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, host_view, spec


@pytest.mark.shows("S044")
@pytest.mark.parametrize(("module", "names"), FILTER_MODULES.items())
def test_each_filter_is_in_its_module_and_in_the_package(module, names):
    source = import_module(f"roost.compat.scheduler.filters.{module}")
    assert [getattr(source, name) for name in names] == [getattr(filters, name) for name in names]
    assert getattr(filters, module) is source


@pytest.mark.shows("S044")
def test_every_filter_is_an_attribute_of_the_package():
    names = {each.__name__ for each in filters.all_filters()}
    assert {name for name in names if getattr(filters, name).__name__ == name} == names
    with pytest.raises(AttributeError, match="NoSuchFilter"):
        _ = filters.NoSuchFilter


@pytest.mark.shows("S191")
@pytest.mark.parametrize(("module", "names"), WEIGHER_MODULES.items())
def test_each_weigher_is_in_its_module(module, names):
    source = import_module(f"roost.compat.scheduler.weights.{module}")
    assert [getattr(source, name) for name in names] == [getattr(weights, name) for name in names]


def test_every_weigher_is_in_a_module():
    known = {name for names in WEIGHER_MODULES.values() for name in names}
    assert known == {each.__name__ for each in weights.all_weighers()}


@pytest.mark.shows("S044")
def test_plugin_inherits_from_a_filter_in_its_module():
    base = sys.modules["roost.compat.scheduler.filters.io_ops_filter"].IoOpsFilter
    rule = adapt(type("Calm", (base,), {"__doc__": "Few operations."}))(NoOptions())
    state = fleet(HostFacts(num_io_ops=8), HostFacts(num_io_ops=7))
    assert rule.keep(host_view(state), spec()).tolist() == [False, True]


def test_field_values_have_a_canonical_form_and_unknown_ones_are_errors():
    assert fields.Architecture.canonicalize("AMD64") == fields.Architecture.X86_64
    assert fields.HVType.canonicalize("xapi") == fields.HVType.XEN
    assert (fields.VMMode.canonicalize("hv"), fields.VMMode.canonicalize(None)) == ("hvm", None)
    assert (fields.HVType.is_valid("qemu"), fields.HVType.is_valid("QEMU")) == (True, False)
    for kind in (fields.Architecture, fields.HVType, fields.VMMode):
        with pytest.raises(exception.Invalid, match="'pdp11' is not recognised"):
            kind.canonicalize("pdp11")
    with pytest.raises(AttributeError, match="has no StringField here"):
        _ = fields.StringField


def test_plugin_error_formats_its_message():
    class Broken(exception.NotFound):
        msg_fmt = "%(thing)s is broken"

    assert (str(Broken(thing="disk")), Broken.code, str(Broken("so"))) == ("disk is broken", 404, "so")
    assert Broken(thing="disk").format_message() == "disk is broken"


@pytest.mark.shows("S114")
def test_reshape_errors_of_nova_are_roost_errors():
    with pytest.raises(ReshapeNeeded, match="inventories"):
        raise exception.ReshapeNeeded
    with pytest.raises(ReshapeFailed, match="no room"):
        raise exception.ReshapeFailed(error="no room")


def test_helper_functions_for_weighers_and_filters(caplog):
    assert utils.parse_options(["a=1.5", "b", "c=x"], sep="=", converter=float, name="metrics.x") == [("a", 1.5)]
    assert "b, c=x" in caplog.text
    host = HostState("h", "n", aggregates=[HostAggregate(metadata={"m": "2"}), HostAggregate(metadata={"m": "1"})])
    assert (utils.get_weight_multiplier(host, "m", 3.0), utils.get_weight_multiplier(host, "k", 3.0)) == (1.0, 3.0)
    rebuild = RequestSpec.from_request(Request(flavor=Flavor(name="f"), hints={"_nova_check_type": ["rebuild"]}))
    assert (utils.request_is_rebuild(rebuild), utils.request_is_rebuild(None)) == (True, False)
    host.instances = {"a": None}
    assert (instance_uuids_overlap(host, "a"), instance_uuids_overlap(host, ["b"])) == (True, False)
    assert (validate_num_values({"3", "12"}), validate_num_values(set(), 5)) == (3, 5)
    assert extra_specs_ops.match("7", ">= 6")


def test_substitutes_for_oslo_and_netaddr():
    assert jsonutils.loads(jsonutils.dump_as_bytes({"a": [1]})) == jsonutils.to_primitive({"a": [1]}) == {"a": [1]}
    assert [strutils.bool_from_string(each) for each in (True, "Yes", "off", "x")] == [True, True, False, False]
    with pytest.raises(ValueError, match="neither true nor false"):
        strutils.bool_from_string("x", strict=True)
    assert versionutils.convert_version_to_str(versionutils.convert_version_to_int("1.2.3")) == "1.2.3"
    assert versionutils.VersionPredicate(">=6.0, <7").satisfied_by("6.2.0")
    now = timeutils.utcnow(with_timezone=True)
    assert timeutils.delta_seconds(now, timeutils.normalize_time(now)) == 0
    assert not timeutils.is_older_than(now, 3600)
    assert netaddr.IPAddress("10.0.0.7") in netaddr.IPNetwork("10.0.0.1/24")
    assert "10.0.1.7" not in netaddr.IPNetwork("10.0.0.1/24")
    for text in ("10.0.0.1/99", "host"):
        with pytest.raises(netaddr.AddrFormatError):
            netaddr.IPNetwork(text)


def test_a_logger_takes_context_as_keywords(caplog):
    log.getLogger("acme").warning("%s is full", "a", instance_uuid="u", instance=None)
    assert caplog.messages == ["[instance: u] a is full"]


@pytest.mark.shows("S112", "S118", "S132")
def test_nova_report_client_takes_a_context_first():
    calls = []
    client = SimpleNamespace(
        get_allocations_for_provider_tree=lambda name: calls.append(name) or {"c": {}},
        update_from_provider_tree=lambda tree, allocations=None: calls.append((tree, allocations)),
    )
    report = SchedulerReportClient(client)
    assert report.get_allocations_for_provider_tree(None, "host1") == {"c": {}}
    report.update_from_provider_tree(None, "tree", None)
    assert calls == ["host1", ("tree", None)]
    with pytest.raises(AttributeError):
        _ = report.no_such_call


def test_numa_fit_of_an_instance_respects_the_limits():
    wanted = RequestSpec.from_request(
        Request(flavor=Flavor(name="f", vcpus=2, memory_mb=512, extra_specs={"hw:numa_nodes": "1"}))
    )
    constraints = hardware.numa_get_constraints(wanted.flavor, wanted.image)
    assert [(sorted(cell.cpuset), cell.memory) for cell in constraints.cells] == [([0, 1], 512)]
    from roost.compat.numa import topology_for

    cell = NumaCell(id=0, cpus=(0, 1), memory_mb=1024)
    host = topology_for(HostFacts(numa=NumaTopology(cells=(cell,))))
    limits = hardware.NUMATopologyLimits(cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0)
    assert hardware.numa_fit_instance_to_host(host, constraints, limits=limits) is constraints
    small = hardware.NUMATopologyLimits(cpu_allocation_ratio=1.0, ram_allocation_ratio=0.25)
    assert hardware.numa_fit_instance_to_host(host, constraints, limits=small) is None
    assert (wanted.numa_topology.cells[0].memory, host.has_threads) == (512, False)


def test_provider_tree_is_importable_by_its_nova_name():
    from roost.compat.compute.provider_tree import ProviderTree

    tree = ProviderTree()
    tree.new_root("host", "8b1ea66f-7ffb-4f7c-8b6d-3b6c2d7f0d44")
    assert tree.exists("host")


def test_nova_weigher_sets_its_multiplier_for_each_host():
    class Acme(weights.BaseHostWeigher):
        def weight_multiplier(self, host_state):
            return utils.get_weight_multiplier(host_state, "acme_weight_multiplier", 2.0)

        def _weigh_object(self, host_state, weight_properties):
            return 1.0

    state = fleet(HostFacts(), HostFacts(), aggregates=[({"acme_weight_multiplier": "-1"}, [1])])
    rule = adapt(Acme)(NoOptions())
    assert rule.multipliers(host_view(state), spec()).tolist() == [2.0, -1.0]


def test_candidate_filter_runs_for_each_candidate():
    class Picky(filters.BaseHostFilter, filters.CandidateFilterMixin):
        def host_passes(self, host_state, spec_obj):
            return bool(self.filter_candidates(host_state, lambda each: "good" in each["mappings"]))

    rule, state = adapt(Picky)(NoOptions()), fleet(HostFacts())
    candidates = ({"good": ["p"]}, {"bad": ["p"]})
    assert [rule.accepts(host_view(state), spec(), at=0, mappings=each) for each in candidates] == [True, False]
