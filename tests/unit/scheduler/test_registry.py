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
    """Options of a third-party rule."""

    acme_limit: int = 3


class Acme:
    """A third-party filter."""

    name = "acme"
    nova_name = "AcmeFilter"
    section = "acme"
    options = Options
    run_filter_once_per_request = run_on_rebuild = False

    def __init__(self, options):
        self.limit = options.acme_limit

    def reads(self, spec):
        """Return that verdicts depend on use."""
        return "use"

    def concerns(self, spec):
        """Return True."""
        return True

    def keep(self, hosts, spec):
        """Accept every host."""
        return np.ones(len(hosts), dtype=np.bool_)

    def reason(self, spec):
        """Return a fixed reason."""
        return "lack something"


class Foreign:
    """A class that is not a rule."""


@pytest.fixture
def acme(monkeypatch):
    module = types.ModuleType("acmefilter")
    module.AcmeFilter, module.both, module.Foreign = Acme, lambda: [Acme, Compute], Foreign
    module.number, module.broken = 7, lambda: 1 / 0
    monkeypatch.setitem(sys.modules, "acmefilter", module)


def names(rules):
    return [rule.name for rule in rules]


def build_rules(tables=None, **options):
    return registry.build(Settings(filter_scheduler=FilterScheduler(**options), tables=tables or {}))


@pytest.mark.shows("S052", "S083", "S084")
def test_default_rules_match_nova():
    rules = build_rules()
    assert names(rules.filters) == [
        "compute",
        "compute_capabilities",
        "image_properties",
        "server_group_anti_affinity",
        "server_group_affinity",
    ]
    assert names(rules.weighers) == names(registry.builtin_weighers())


@pytest.mark.shows("S010")
def test_filters_run_once_each_in_the_order_of_the_settings():
    rules = build_rules(enabled_filters=("server_group_affinity", "ComputeFilter", "all_hosts", "compute"))
    assert names(rules.filters) == ["server_group_affinity", "compute", "all_hosts"]


def test_error_names_all_unknown_filters():
    with pytest.raises(BadSettings, match=r"enabled_filters: Scheduler Host Filter A, B could not be found\."):
        build_rules(enabled_filters=("A", "compute", "B"))


def test_only_available_filters_can_be_enabled():
    available = ("nova.scheduler.filters.compute_filter.ComputeFilter",)
    assert names(build_rules(available_filters=available, enabled_filters=("compute",)).filters) == ["compute"]
    with pytest.raises(BadSettings, match="all_hosts"):
        build_rules(available_filters=available, enabled_filters=("all_hosts",))


@pytest.mark.shows("S084", "S148")
def test_weighers_are_named_by_file_class_or_path():
    classes = ("ram", "nova.scheduler.weights.cpu.CPUWeigher", "roost.scheduler.weighers.ram.Ram")
    assert [type(each) for each in build_rules(weight_classes=classes).weighers] == [Ram, Cpu]


def test_options_come_from_their_section():
    rules = build_rules(tables={"filter_scheduler": {"ram_weight_multiplier": 2, "other": 1}}, weight_classes=("ram",))
    assert rules.weighers[0].multiplier == 2.0
    with pytest.raises(BadSettings, match="filter_scheduler"):
        build_rules(tables={"filter_scheduler": {"ram_weight_multiplier": "x"}}, weight_classes=("ram",))


@pytest.mark.shows("S082")
@pytest.mark.usefixtures("acme")
def test_import_paths_add_third_party_filters():
    rules = build_rules(
        available_filters=(ALL, "acmefilter.AcmeFilter"),
        enabled_filters=("compute", "AcmeFilter"),
        tables={"acme": {"acme_limit": 9}},
    )
    assert names(rules.filters) == ["compute", "acme"]
    assert rules.filters[1].rule.limit == 9
    assert names(build_rules(available_filters=("acmefilter.both",), enabled_filters=("acme",)).filters) == ["acme"]


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
def test_path_without_a_rule_is_refused(path, problem):
    with pytest.raises(BadSettings, match=problem):
        build_rules(available_filters=(ALL, path))
    with pytest.raises(BadSettings, match=problem):
        build_rules(weight_classes=(path,))


@pytest.mark.usefixtures("acme")
def test_adapter_turns_a_foreign_class_into_a_rule():
    settings = FilterScheduler(available_filters=("acmefilter.Foreign",))
    catalogue = registry.catalogue(settings, adapt=lambda kind: Acme if kind is Foreign else None)
    assert catalogue.filters == (Acme,)


def entry_point(target):
    """Return an entry point that loads the target, or raises it if it is an exception."""

    class Entry:
        name = "acme"

        def load(self):
            if isinstance(target, Exception):
                raise target
            return target

    return Entry()


def test_entry_points_are_always_available(monkeypatch):
    monkeypatch.setattr(registry, "find_entries", lambda group: [entry_point(Acme)] if group == "roost.filters" else [])
    assert names(build_rules(enabled_filters=("acme", "compute")).filters) == ["acme", "compute"]


@pytest.mark.parametrize("target", [ImportError("no"), Foreign])
def test_entry_point_without_a_rule_is_refused(monkeypatch, target):
    monkeypatch.setattr(registry, "find_entries", lambda _: [entry_point(target)])
    with pytest.raises(BadSettings, match=r"entry point roost\.filters\.acme"):
        build_rules()


def test_no_installed_package_adds_rules():
    assert not importlib.metadata.entry_points(group="roost.filters")
    assert NoOptions.__struct_fields__ == ()
