"""Declarations of rules that derive from the base classes."""

from typing import Annotated

import msgspec
import pytest

from roost.scheduler.filters.ram import Ram as RamFilter
from roost.scheduler.framework.base_rule import BaseFilter, BaseWeigher
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.weighers.build_failure import BuildFailure, BuildFailureOptions
from roost.scheduler.weighers.metrics import Metrics, MetricsOptions
from roost.scheduler.weighers.ram import Ram


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the weigher below."""

    quiet_weight_multiplier: Annotated[float, msgspec.Meta(description="Weight of quiet.")] = 2.0


class Quiet(BaseWeigher[Weights]):
    """A weigher that overrides some defaults."""

    name = "quiet"
    options = Weights
    multiplier_option = "quiet_weight_multiplier"
    sign = -1.0


class Plain(BaseFilter[NoOptions]):
    """A filter that overrides no default."""


def test_a_rule_is_named_after_its_module_unless_it_sets_a_name():
    assert (RamFilter.name, Ram.name) == ("ram", "ram")
    assert Plain.name == "test_base_rule"
    assert Quiet.name == "quiet"


def test_filter_defaults_apply_to_every_request_but_no_rebuild():
    rule = Plain(NoOptions())
    assert (rule.nova_name, rule.section, rule.options) == ("", "filter_scheduler", NoOptions)
    assert (rule.run_filter_once_per_request, rule.run_on_rebuild) == (False, False)
    assert rule.concerns(None)
    assert rule.reads(None) == "use"


def test_a_multiplier_is_an_option_with_the_sign_of_the_weigher():
    assert Quiet(Weights()).multiplier == -2.0
    assert BuildFailure(BuildFailureOptions(build_failure_weight_multiplier=3.0)).multiplier == -3.0


@pytest.mark.parametrize(
    ("weigher", "option", "key"),
    [
        (Quiet, "quiet_weight_multiplier", "quiet_weight_multiplier"),
        (Metrics, "weight_multiplier", "metrics_weight_multiplier"),
    ],
)
def test_aggregate_key_defaults_to_the_name_of_the_option(weigher, option, key):
    assert (weigher.multiplier_option, weigher.aggregate_key) == (option, key)
    assert (weigher.minval, weigher.maxval) == (None, None)


def test_options_reach_the_rule():
    assert Metrics(MetricsOptions(weight_multiplier=4.0)).multiplier == 4.0
