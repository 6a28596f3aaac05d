from importlib.metadata import EntryPoint

import pytest

from roost.compute import driver as drivers_module
from roost.compute.driver import GROUP, drivers, load, read_resources
from roost.compute.drivers.fake.driver import Fake
from roost.errors import BadRequest, BadSettings
from roost.model.work.agent_terms import Capabilities, HostTerms, NodeResources
from tests.support.agents.driver_doubles import fake


class Half(Fake):
    """A driver that lacks things."""

    save = None
    guests = None


class Old(Fake):
    """A driver of the time before reshapes."""

    def update_provider_tree(self, tree, node):
        """Take no allocations."""

    def power(self, uuid, on):
        """Take another name."""


class Upgrade(Fake):
    """A driver with another name for what brings its providers."""

    update_provider_tree = None

    def upgrade_provider_tree(self, tree, node, allocations=None):
        """Be called by nobody."""


class Capital(Fake):
    """A driver with the name in another spelling."""

    update_provider_tree = None

    def update_providerTree(self, tree, node, allocations=None):  # noqa: N802  # It is misspelt.
        """Be called by nobody."""


class Mute(Fake):
    """A driver that does not say what it can."""

    capabilities = None


def half(_options, _terms):
    return make(Half, _terms)


def make(kind, terms):
    plain = fake(terms=terms)
    plain.__class__ = kind
    return plain


def old(_options, _terms):
    return make(Old, _terms)


def upgrade(_options, _terms):
    return make(Upgrade, _terms)


def capital(_options, _terms):
    return make(Capital, _terms)


def mute(_options, _terms):
    return make(Mute, _terms)


def broken(_options, _terms):
    raise RuntimeError("no such hypervisor")


def picky(_options, _terms):
    raise BadSettings("driver picky", "needs the option url")


def nothing(_options, _terms):
    return None


def whole(options, terms):
    assert (options, terms) == ({"url": "x"}, HostTerms(reserved_host_cpus=1))
    return make(Fake, terms)


@pytest.fixture
def offered(monkeypatch):
    """Let drivers be offered by entry points."""
    found = []
    monkeypatch.setattr(drivers_module, "entry_points", lambda group: [each for each in found if each.group == group])

    def offer(name, value, group=GROUP):
        found.append(EntryPoint(name=name, value=value, group=group))

    drivers.cache_clear()
    yield offer
    drivers.cache_clear()


def test_our_own_are_there_by_name():
    assert drivers()["fake"].load() is not None
    assert isinstance(load("fake", {}), Fake)


def test_those_of_entry_points_are_there_too(offered):
    offered("whole", f"{__name__}:whole")
    offered("other", f"{__name__}:whole", group="roost.filters")
    assert [*drivers()] == ["fake", "libvirt", "whole"]
    assert isinstance(load("whole", {"url": "x"}, HostTerms(reserved_host_cpus=1)), Fake)


def test_a_name_that_two_have_is_refused(offered):
    offered("fake", "metal.driver:make")
    with pytest.raises(BadSettings, match=r"^driver fake: is both roost[.]\S+:make and metal[.]driver:make$"):
        drivers()


def test_a_name_that_two_packages_give_to_the_same_is_one(offered):
    for _ in range(2):
        offered("whole", f"{__name__}:whole")
    assert [*drivers()] == ["fake", "libvirt", "whole"]


@pytest.mark.shows("S117", "S136")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("half", "is no driver: it lacks save, guests"),
        (
            "old",
            "is no driver: update_provider_tree does not take tree, node, allocations; power does not take uuid, is_on",
        ),
        ("upgrade", "is no driver: it lacks update_provider_tree"),
        ("capital", "is no driver: it lacks update_provider_tree"),
        ("mute", "is no driver: its capabilities are none"),
        ("broken", "cannot be made: RuntimeError: no such hypervisor"),
        ("picky", "needs the option url"),
        ("nothing", "is no driver: it lacks start, nodes"),
        ("absent", "cannot be imported: AttributeError"),
    ],
)
def test_what_is_no_driver_is_refused_by_its_name(offered, name, problem):
    offered(name, f"{__name__}:{name}")
    with pytest.raises(BadSettings) as error:
        load(name, {})
    assert str(error.value).startswith(f"driver {name}: ")
    assert problem in str(error.value)


def test_a_driver_whose_module_is_not_there_is_refused_by_its_name(offered):
    offered("metal", "metal_that_nobody_has.driver:make")
    with pytest.raises(BadSettings, match=r"^driver metal: cannot be imported: ModuleNotFoundError: .*metal_that"):
        load("metal", {})


def test_a_name_that_nobody_has_is_told_with_those_there_are():
    with pytest.raises(BadSettings, match=r"^driver metal: is none of .*fake"):
        load("metal", {})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"path": "x"}, "driver fake: has no option path; it has script, state, seed"),
        ({"seed": "many"}, "driver fake, option seed: Expected int"),
    ],
)
def test_an_option_that_cannot_be_meant_is_named(options, problem):
    with pytest.raises(BadSettings) as error:
        load("fake", options)
    assert str(error.value).startswith(problem)


TOLD = {
    "vcpus": 1,
    "memory_mb": 2,
    "local_gb": 3,
    "vcpus_used": 0,
    "memory_mb_used": 0,
    "local_gb_used": 0,
    "cpu_info": None,
    "numa_topology": None,
}


def test_resources_may_be_a_table_and_no_words_of_the_processor_are_empty_ones():
    assert read_resources("n", TOLD) == NodeResources(**TOLD | {"cpu_info": {}})


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        (None, "the resources of node n must be a table, got None"),
        ({}, "lack vcpus, memory_mb, local_gb, vcpus_used, memory_mb_used, local_gb_used, cpu_info, numa_topology"),
        (TOLD | {"vcpus": -1}, "cannot be meant: vcpus: Expected int >= 0"),
        (TOLD | {"numa_topology": {"cells": [{"id": 0}]}}, "missing required field memory_mb"),
    ],
)
def test_resources_that_cannot_be_meant_are_refused(told, problem):
    with pytest.raises(BadRequest) as error:
        read_resources("n", told)
    assert problem in str(error.value)


def test_what_a_driver_can_is_told_as_traits_that_it_has_and_has_not():
    told = Capabilities(traits=frozenset({"COMPUTE_IMAGE_TYPE_RAW"})).as_traits()
    assert (told["COMPUTE_IMAGE_TYPE_RAW"], told["COMPUTE_IMAGE_TYPE_ISO"]) == (True, False)
    with pytest.raises(ValueError, match="COMPUTE_NODE says nothing"):
        Capabilities(traits=frozenset({"COMPUTE_NODE"}))
