"""The contract of every filter and weigher. Rules are discovered, so new ones are tested automatically."""

import copy
import inspect
import pkgutil
from importlib import import_module

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.feasibility.headroom import HEADROOM_MAX
from roost.model.devices.numa import NumaCell, NumaTopology
from roost.model.host import HostFacts, PciPool
from roost.model.request import Destination
from roost.scheduler import filters, weighers
from roost.scheduler.framework.group_slots import place_number
from roost.scheduler.framework.plugin import Countable, implements
from tests.support.fleets.fleets import COLUMNS_OF_COUNTS, fleet, group, host_view, spec, uuid_text


def classes(package):
    """Yield the rule class of each module of a package."""
    for module in pkgutil.iter_modules(package.__path__):
        members = vars(import_module(f"{package.__name__}.{module.name}")).values()
        yield next(each for each in members if inspect.isclass(each) and getattr(each, "name", None) == module.name)


FILTERS, WEIGHERS = list(classes(filters)), list(classes(weighers))
RULES = FILTERS + WEIGHERS


def topology(*pinned):
    """Return one NUMA cell of two processors for each set of pinned processors."""
    return NumaTopology(
        cells=tuple(
            NumaCell(id=at, cpus=(0, 1), pcpus=(0, 1), pinned_cpus=taken, memory_mb=512)
            for at, taken in enumerate(pinned)
        )
    )


host_facts = st.builds(
    HostFacts,
    vcpus_total=st.integers(0, 64),
    hypervisor_type=st.sampled_from(["", "QEMU", "xen"]),
    hypervisor_version=st.sampled_from([0, 4001000, 6002000]),
    supported_instances=st.sampled_from([(), (("x86_64", "kvm", "hvm"),), (("i686", "xen", "xen"),)]),
    cpu_info=st.sampled_from([{}, {"arch": "x86_64"}, {"arch": "ppc64", "maxphysaddr": {"bits": 46}}]),
    stats=st.sampled_from([{}, {"rank": "1"}, {"rank": "x"}]),
    num_io_ops=st.integers(0, 9),
    failed_builds=st.integers(0, 3),
    metrics=st.sampled_from([{}, {"cpu.percent": 10.0}, {"cpu.percent": 90.0, "cpu.frequency": 2400.0}]),
    pci_pools=st.lists(
        st.builds(PciPool, vendor_id=st.just("8086"), product_id=st.just("1"), count=st.integers(0, 60))
    ).map(tuple),
    numa=st.sampled_from([None, topology((0,)), topology(()), topology((), ())]),
    rack=st.sampled_from(["", "r1", "r2"]),
    cell=st.sampled_from(["", "a", "b"]),
    is_disabled=st.booleans(),
    is_forced_down=st.booleans(),
    reported_at_s=st.sampled_from([None, 0.0, 930.0, 1000.0]),
)
POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity", "fault-domain")


@st.composite
def fleets(draw):
    """Draw a fleet whose hosts differ in all inputs of rules."""
    state = fleet(*draw(st.lists(host_facts, min_size=1, max_size=8)))
    for row in range(len(state.hosts)):
        for name in COLUMNS_OF_COUNTS:
            state.hosts.columns[name].data[row] = draw(st.integers(0, 9))
        state.hosts.update_derived(row)
    return state


@st.composite
def specs(draw, rows):
    """Draw a request that concerns some rules."""
    wishes = st.sampled_from(["hypervisor_type", "rank", "capabilities:cpu_info:arch", "num_instances", "uuid"])
    members = group(draw(st.sampled_from(POLICIES)), limit=draw(st.integers(1, 3)))
    members.members.update(draw(st.dictionaries(st.integers(0, rows - 1), st.integers(1, 3))))
    members.places.update({place_number(name): (place_number(name), 1) for name in draw(st.sets(st.just("r1")))})
    return spec(
        draw(st.dictionaries(wishes, st.sampled_from([">= 1", "x86_64", "<in> 1", "QEMU"]), max_size=2))
        | draw(st.sampled_from([{}, {"hw:cpu_policy": "dedicated"}, {"hw:numa_nodes": "1"}])),
        image=draw(st.sampled_from([None, {}, {"hw_architecture": "x86_64", "img_hv_requested_version": ">=5"}])),
        group=draw(st.sampled_from([None, members])),
        hints={
            "fault_domain": draw(st.sampled_from(["r1", "r2"])),
            "query": draw(
                st.sampled_from(['[">", "$vcpus_total", 8]', '["or", ["<", "$hypervisor_type", "b", "$cpu_info"]]'])
            ),
        },
        now_s=1000.0,
        moved_uuid=draw(st.sampled_from([None, uuid_text(5)])),
        destination=draw(st.sampled_from([None, Destination(cell="a", allow_cross_cell_move=True)])),
    )


def default_rule(rule):
    """Return a rule with its default options."""
    return rule(rule.options())


def verdict(rule, view, wanted):
    """Return the mask of a filter or the raw weights of a weigher."""
    return rule.keep(view, wanted) if hasattr(rule, "keep") else rule.raw(view, wanted)


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.name)
@settings(max_examples=30)
@given(data=st.data())
def test_verdicts_do_not_depend_on_other_hosts(kind, data):
    """A shuffle or subset of hosts yields the same shuffle or subset of verdicts."""
    state = data.draw(fleets())
    wanted = data.draw(specs(len(state.hosts)))
    rule = default_rule(kind)
    if not rule.concerns(wanted):
        return
    whole = verdict(rule, host_view(state), wanted)
    rows = data.draw(st.permutations(range(len(state.hosts))))[: data.draw(st.integers(0, len(state.hosts)))]
    np.testing.assert_array_equal(verdict(rule, host_view(state, rows), wanted), whole[rows])
    assert len(whole) == len(state.hosts)
    assert whole.dtype == (np.bool_ if hasattr(rule, "keep") else np.float64)


@pytest.mark.parametrize("kind", [kind for kind in FILTERS if implements(kind, Countable)], ids=lambda kind: kind.name)
@settings(max_examples=30)
@given(data=st.data())
def test_headroom_of_a_filter_is_positive_exactly_on_accepted_hosts(kind, data):
    state = data.draw(fleets())
    wanted = data.draw(specs(len(state.hosts)))
    rule = default_rule(kind)
    if rule.concerns(wanted):
        room = rule.room(host_view(state), wanted)
        np.testing.assert_array_equal(room > 0, rule.keep(host_view(state), wanted))
        assert room.dtype == np.int64
        assert room.min() >= 0
        assert room.max() <= HEADROOM_MAX


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.name)
@settings(max_examples=30)
@given(data=st.data())
def test_rule_does_not_modify_its_input(kind, data):
    state = data.draw(fleets())
    wanted = data.draw(specs(len(state.hosts)))
    rule = default_rule(kind)
    before = {name: column.view.copy() for name, column in state.hosts.columns.items()}
    facts, request = msgspec.json.encode(state.hosts.facts), msgspec.json.encode(wanted.request)
    members = copy.deepcopy(wanted.group and (wanted.group.members, wanted.group.places))
    if rule.concerns(wanted):
        verdict(rule, host_view(state), wanted)
    for name, column in before.items():
        np.testing.assert_array_equal(state.hosts.columns[name].view, column)
    assert (facts, request) == (msgspec.json.encode(state.hosts.facts), msgspec.json.encode(wanted.request))
    assert members == (wanted.group and (wanted.group.members, wanted.group.places))


@pytest.mark.parametrize("kind", FILTERS, ids=lambda kind: kind.name)
@settings(max_examples=30)
@given(data=st.data())
def test_verdict_on_facts_does_not_depend_on_usage(kind, data):
    state = data.draw(fleets())
    wanted = data.draw(specs(len(state.hosts)))
    rule = default_rule(kind)
    if not rule.concerns(wanted) or rule.reads(wanted) != "facts":
        return
    before = rule.keep(host_view(state), wanted)
    for row in range(len(state.hosts)):
        for name in COLUMNS_OF_COUNTS:
            state.hosts.columns[name].data[row] += 5
        state.hosts.update_derived(row)
    np.testing.assert_array_equal(rule.keep(host_view(state), wanted), before)


@pytest.mark.parametrize("kind", FILTERS, ids=lambda kind: kind.name)
@settings(max_examples=30)
@given(data=st.data())
def test_reason_is_a_clause_without_its_subject(kind, data):
    wanted = data.draw(specs(3))
    if kind.name != "all_hosts" and not default_rule(kind).concerns(wanted):
        return
    reason = default_rule(kind).reason(wanted)
    assert reason
    assert reason == reason.strip()
    assert reason[0].islower()
    assert not reason.endswith(".")


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.name)
def test_rule_has_a_section_and_works_with_default_options(kind):
    assert kind.section
    assert issubclass(kind.options, msgspec.Struct)
    default_rule(kind)


@pytest.mark.parametrize("kind", RULES, ids=lambda kind: kind.name)
def test_every_option_has_a_description(kind):
    schema = msgspec.json.schema(kind.options)["$defs"][kind.options.__name__]["properties"]
    assert [name for name, option in schema.items() if not option.get("description", "").endswith(".")] == []


def test_rule_names_are_unique():
    for kinds in (FILTERS, WEIGHERS):
        names = [name for kind in kinds for name in {kind.name, kind.nova_name} if name]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("kind", WEIGHERS, ids=lambda kind: kind.name)
def test_multiplier_comes_from_the_option_named_by_the_aggregate_key(kind):
    # In a section of its own, the option name omits the section name.
    value = getattr(kind.options(), kind.aggregate_key.removeprefix(f"{kind.section}_"))
    assert default_rule(kind).multiplier == kind.sign * value
