import pytest

from roost.model.flavor import Flavor
from roost.model.request import Request
from roost.scheduler.framework.base_rule import BaseFilter
from roost.scheduler.framework.hint_names import HintNames
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.registry import build
from roost.settings import read_settings

NAMES = HintNames(enabled=frozenset({"different_host"}), idle={"different_host": "different_host", "query": "json"})
UNREAD = "has no effect: no enabled filter reads it"


class Secretive(BaseFilter[NoOptions]):
    """A third-party filter that does not declare its hints."""

    name = "secretive"

    def keep(self, hosts, spec):
        """Keep all hosts."""
        return hosts.alive()

    def reason(self, spec):
        """Return a reason, which no host needs."""
        return "are not windy"


class Windy(Secretive):
    """A third-party filter that declares a hint."""

    name = "windy"
    hints = ("wind",)


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        ("different_host", ""),
        ("group", ""),
        ("_nova_check_type", ""),
        ("query", "the hint query has no effect: the filter json is not enabled"),
        ("diferent_host", f"the hint 'diferent_host' {UNREAD}; did you mean different_host?"),
        ("colour", f"the hint 'colour' {UNREAD}"),
    ],
)
def test_hint_without_effect_is_a_problem(hint, problem):
    assert NAMES.problem(hint) == problem


def request_problems(*filters, **hints):
    """Return the problems of hints while some filters are enabled."""
    paths = ["nova.scheduler.filters.all_filters", *(f"{__name__}.{each}" for each in ("Windy", "Secretive"))]
    table = f"[filter_scheduler]\navailable_filters = {paths}\nenabled_filters = {list(filters)}\n"
    request = Request(flavor=Flavor(name="a", vcpus=1, memory_mb=1), hints=hints)
    return build(read_settings(table.replace("'", '"'))).request_problems(request)


def test_hint_of_a_plug_in_is_known_only_if_the_plug_in_is_enabled():
    assert request_problems("compute", "windy", wind="west") == ()
    assert request_problems("compute", wind="west") == (f"the hint 'wind' {UNREAD}",)


def test_plug_in_without_declared_hints_may_read_any_hint_but_a_misspelled_one():
    assert request_problems("compute", "secretive", colour="red") == ()
    assert request_problems("compute", "secretive", sam_host="x") == (
        f"the hint 'sam_host' {UNREAD}; did you mean same_host?",
    )
