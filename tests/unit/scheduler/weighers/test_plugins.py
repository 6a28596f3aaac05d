import importlib.metadata
import sys
import types

import msgspec
import numpy as np
import pytest

from roost.errors import BadSettings
from roost.model.settings.roost_settings import FilterScheduler, Settings
from roost.scheduler import registry
from roost.scheduler.filters.compute import Compute
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.weighers.cpu import Cpu
from roost.scheduler.weighers.ram import Ram

ALL = "nova.scheduler.filters.all_filters"


class Options(msgspec.Struct, frozen=True):
    """Options of a rule of somebody else."""

    acme_limit: int = 3


class Acme:
    """A filter of somebody else."""

    name = "acme"
    nova_name = "AcmeFilter"
    section = "acme"
    options = Options
    run_filter_once_per_request = run_on_rebuild = False

    def __init__(self, options):
        self.limit = options.acme_limit

    def reads(self, spec):
        """Say that use is read."""
        return "use"

    def concerns(self, spec):
        """Say that every request concerns it."""
        return True

    def keep(self, hosts, spec):
        """Keep everything."""
        return np.ones(len(hosts), dtype=np.bool_)

    def reason(self, spec):
        """Say nothing much."""
        return "lack something"


class Foreign:
    """A class that is no rule of ours."""


@pytest.fixture
def acme(monkeypatch):
    module = types.ModuleType("acmefilter")
    module.AcmeFilter, module.both, module.Foreign = Acme, lambda: [Acme, Compute], Foreign
    module.number, module.broken = 7, lambda: 1 / 0
    monkeypatch.setitem(sys.modules, "acmefilter", module)


def names(rules):
    return [rule.name for rule in rules]


def built(tables=None, **changed):
    return registry.build(Settings(filter_scheduler=FilterScheduler(**changed), tables=tables or {}))


@pytest.mark.shows("S052", "S083", "S084")
def test_the_default_rules_are_nova_s():
    rules = built()
    assert names(rules.filters) == [
        "compute",
        "compute_capabilities",
        "image_properties",
        "server_group_anti_affinity",
        "server_group_affinity",
    ]
    assert names(rules.weighers) == names(registry.builtin_weighers())


@pytest.mark.shows("S010")
def test_filters_run_in_the_order_of_the_settings_each_once():
    rules = built(enabled_filters=("server_group_affinity", "ComputeFilter", "all_hosts", "compute"))
    assert names(rules.filters) == ["server_group_affinity", "compute", "all_hosts"]


def test_all_unknown_filters_are_named_together():
    with pytest.raises(BadSettings, match=r"enabled_filters: Scheduler Host Filter A, B could not be found\."):
        built(enabled_filters=("A", "compute", "B"))


def test_only_available_filters_can_be_enabled():
    available = ("nova.scheduler.filters.compute_filter.ComputeFilter",)
    assert names(built(available_filters=available, enabled_filters=("compute",)).filters) == ["compute"]
    with pytest.raises(BadSettings, match="all_hosts"):
        built(available_filters=available, enabled_filters=("all_hosts",))


@pytest.mark.shows("S084", "S148")
def test_weighers_are_named_by_file_class_or_path():
    chosen = ("ram", "nova.scheduler.weights.cpu.CPUWeigher", "roost.scheduler.weighers.ram.Ram")
    assert [type(each) for each in built(weight_classes=chosen).weighers] == [Ram, Cpu]


def test_options_come_from_their_section():
    rules = built(tables={"filter_scheduler": {"ram_weight_multiplier": 2, "other": 1}}, weight_classes=("ram",))
    assert rules.weighers[0].multiplier == 2.0
    with pytest.raises(BadSettings, match="filter_scheduler"):
        built(tables={"filter_scheduler": {"ram_weight_multiplier": "x"}}, weight_classes=("ram",))


@pytest.mark.shows("S082")
@pytest.mark.usefixtures("acme")
def test_paths_add_filters_of_somebody_else():
    rules = built(
        available_filters=(ALL, "acmefilter.AcmeFilter"),
        enabled_filters=("compute", "AcmeFilter"),
        tables={"acme": {"acme_limit": 9}},
    )
    assert names(rules.filters) == ["compute", "acme"]
    assert rules.filters[1].rule.limit == 9
    assert names(built(available_filters=("acmefilter.both",), enabled_filters=("acme",)).filters) == ["acme"]


@pytest.mark.usefixtures("acme")
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("acmefilter.Missing", "cannot be loaded"),
        ("nowhere.at.All", "cannot be loaded"),
        ("acmefilter.number", "neither a class nor a function"),
        ("acmefilter.broken", "returns no classes"),
        ("acmefilter.Foreign", "is not a rule"),
        ("nova.scheduler.filters.isolated.NoSuchFilter", "there is no rule"),
        ("NoSuchFilter", "there is no rule"),
    ],
)
def test_a_path_that_leads_to_no_rule_is_refused(path, problem):
    with pytest.raises(BadSettings, match=problem):
        built(available_filters=(ALL, path))
    with pytest.raises(BadSettings, match=problem):
        built(weight_classes=(path,))


@pytest.mark.usefixtures("acme")
def test_a_foreign_class_becomes_a_rule_if_somebody_knows_how():
    settings = FilterScheduler(available_filters=("acmefilter.Foreign",))
    found = registry.catalogue(settings, adapt=lambda kind: Acme if kind is Foreign else None)
    assert found.filters == (Acme,)


def entry(loaded):
    """Give an entry point that loads what is given, or raises it."""

    class Entry:
        name = "acme"

        def load(self):
            if isinstance(loaded, Exception):
                raise loaded
            return loaded

    return Entry()


def test_entry_points_are_always_available(monkeypatch):
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry(Acme)] if group == "roost.filters" else [])
    assert names(built(enabled_filters=("acme", "compute")).filters) == ["acme", "compute"]


@pytest.mark.parametrize("loaded", [ImportError("no"), Foreign])
def test_an_entry_point_that_is_no_rule_is_refused(monkeypatch, loaded):
    monkeypatch.setattr(registry, "entry_points", lambda **_: [entry(loaded)])
    with pytest.raises(BadSettings, match=r"entry point roost\.filters\.acme"):
        built()


def test_no_package_on_this_machine_disturbs_these_tests():
    assert not importlib.metadata.entry_points(group="roost.filters")
    assert NoOptions.__struct_fields__ == ()
