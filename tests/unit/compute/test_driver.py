from importlib.metadata import EntryPoint

import pytest

from roost.compute import driver as drivers_module
from roost.compute.driver import GROUP, drivers, load, read_resources
from roost.compute.drivers.fake.driver import Fake
from roost.errors import BadRequest, BadSettings
from roost.model.work.agent_terms import Capabilities, HostTerms, NodeResources
from tests.support.agents.driver_doubles import fake_driver


class IncompleteDriver(Fake):
    """A driver that lacks two methods."""

    save = None
    guests = None


class OldDriver(Fake):
    """A driver whose methods take other arguments."""

    def update_provider_tree(self, tree, node):
        """Lack the parameter ``allocations``."""

    def power(self, uuid, on):
        """Have another parameter name."""


class MisnamedDriver(Fake):
    """A driver with another name for ``update_provider_tree``."""

    update_provider_tree = None

    def upgrade_provider_tree(self, tree, node, allocations=None):
        """Never called."""


class MisspeltDriver(Fake):
    """A driver with another spelling of ``update_provider_tree``."""

    update_provider_tree = None

    def update_providerTree(self, tree, node, allocations=None):  # noqa: N802  # It is misspelt.
        """Never called."""


class DriverWithoutCapabilities(Fake):
    """A driver that does not list its capabilities."""

    capabilities = None


def half(_options, _terms):
    return make_driver(IncompleteDriver, _terms)


def make_driver(kind, terms):
    driver = fake_driver(terms=terms)
    driver.__class__ = kind
    return driver


def old(_options, _terms):
    return make_driver(OldDriver, _terms)


def upgrade(_options, _terms):
    return make_driver(MisnamedDriver, _terms)


def capital(_options, _terms):
    return make_driver(MisspeltDriver, _terms)


def mute(_options, _terms):
    return make_driver(DriverWithoutCapabilities, _terms)


def broken(_options, _terms):
    raise RuntimeError("no such hypervisor")


def picky(_options, _terms):
    raise BadSettings("driver picky", "needs the option url")


def nothing(_options, _terms):
    return None


def whole(options, terms):
    assert (options, terms) == ({"url": "x"}, HostTerms(reserved_host_cpus=1))
    return make_driver(Fake, terms)


@pytest.fixture
def offer(monkeypatch):
    """Return a function that adds a driver as an entry point."""
    offers = []
    monkeypatch.setattr(drivers_module, "entry_points", lambda group: [each for each in offers if each.group == group])

    def add(name, value, group=GROUP):
        offers.append(EntryPoint(name=name, value=value, group=group))

    drivers.cache_clear()
    yield add
    drivers.cache_clear()


def test_builtin_drivers_load_by_name():
    assert drivers()["fake"].load() is not None
    assert isinstance(load("fake", {}), Fake)


def test_drivers_from_entry_points_load_by_name(offer):
    offer("whole", f"{__name__}:whole")
    offer("other", f"{__name__}:whole", group="roost.filters")
    assert [*drivers()] == ["fake", "libvirt", "whole"]
    assert isinstance(load("whole", {"url": "x"}, HostTerms(reserved_host_cpus=1)), Fake)


def test_driver_name_with_two_targets_is_refused(offer):
    offer("fake", "metal.driver:make")
    with pytest.raises(
        BadSettings, match=r"^driver fake: is defined twice, as roost[.]\S+:make and as metal[.]driver:make$"
    ):
        drivers()


def test_driver_offered_twice_with_one_target_is_listed_once(offer):
    for _ in range(2):
        offer("whole", f"{__name__}:whole")
    assert [*drivers()] == ["fake", "libvirt", "whole"]


@pytest.mark.shows("S117", "S136")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("half", "is not a driver: it lacks save, guests"),
        (
            "old",
            (
                "is not a driver: update_provider_tree does not take tree, node, allocations; "
                "power does not take uuid, is_on"
            ),
        ),
        ("upgrade", "is not a driver: it lacks update_provider_tree"),
        ("capital", "is not a driver: it lacks update_provider_tree"),
        ("mute", "is not a driver: its capabilities are not Capabilities"),
        ("broken", "cannot be created: RuntimeError: no such hypervisor"),
        ("picky", "needs the option url"),
        ("nothing", "is not a driver: it lacks start, nodes"),
        ("absent", "cannot be imported: AttributeError"),
    ],
)
def test_invalid_driver_is_refused_by_name(offer, name, problem):
    offer(name, f"{__name__}:{name}")
    with pytest.raises(BadSettings) as error:
        load(name, {})
    assert str(error.value).startswith(f"driver {name}: ")
    assert problem in str(error.value)


def test_driver_with_a_missing_module_is_refused_by_name(offer):
    offer("metal", "metal_that_nobody_has.driver:make")
    with pytest.raises(BadSettings, match=r"^driver metal: cannot be imported: ModuleNotFoundError: .*metal_that"):
        load("metal", {})


def test_unknown_driver_error_lists_the_available_ones():
    with pytest.raises(BadSettings, match=r"^driver metal: does not exist; the drivers are .*fake"):
        load("metal", {})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"path": "x"}, "driver fake: has no option path; it has script, state, seed"),
        ({"seed": "many"}, "driver fake, option seed: Expected int"),
    ],
)
def test_invalid_option_is_named_in_the_error(options, problem):
    with pytest.raises(BadSettings) as error:
        load("fake", options)
    assert str(error.value).startswith(problem)


RESOURCES = {
    "vcpus": 1,
    "memory_mb": 2,
    "local_gb": 3,
    "vcpus_used": 0,
    "memory_mb_used": 0,
    "local_gb_used": 0,
    "cpu_info": None,
    "numa_topology": None,
}


def test_resources_may_be_a_dict_and_null_cpu_info_becomes_empty():
    assert read_resources("n", RESOURCES) == NodeResources(**RESOURCES | {"cpu_info": {}})


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        (None, "the resources of node n must be a table, got None"),
        ({}, "lack vcpus, memory_mb, local_gb, vcpus_used, memory_mb_used, local_gb_used, cpu_info, numa_topology"),
        (RESOURCES | {"vcpus": -1}, "are invalid: vcpus: Expected int >= 0"),
        (RESOURCES | {"numa_topology": {"cells": [{"id": 0}]}}, "missing required field memory_mb"),
    ],
)
def test_invalid_resources_are_refused(resources, problem):
    with pytest.raises(BadRequest) as error:
        read_resources("n", resources)
    assert problem in str(error.value)


def test_capabilities_list_supported_and_unsupported_traits():
    traits = Capabilities(traits=frozenset({"COMPUTE_IMAGE_TYPE_RAW"})).as_traits()
    assert (traits["COMPUTE_IMAGE_TYPE_RAW"], traits["COMPUTE_IMAGE_TYPE_ISO"]) == (True, False)
    with pytest.raises(ValueError, match="COMPUTE_NODE is not a trait of a driver capability"):
        Capabilities(traits=frozenset({"COMPUTE_NODE"}))
