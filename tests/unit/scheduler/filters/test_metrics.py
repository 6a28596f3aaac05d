import pytest

from roost.model.host import HostFacts
from roost.scheduler.filters.metrics import Metrics, MetricsOptions
from tests.support.fleets.fleets import fleet, host_view, spec


@pytest.mark.shows("S042")
def test_host_must_report_every_weighed_metric():
    rule = Metrics(MetricsOptions(weight_setting=("cpu=1", "io=-0.5")))
    state = fleet(HostFacts(metrics={"cpu": 0.0, "io": 1.0, "x": 1.0}), HostFacts(metrics={"io": 1.0}), HostFacts())
    assert rule.keep(host_view(state), spec()).tolist() == [True, False, False]
    assert rule.keep(host_view(state, [2, 0]), spec()).tolist() == [False, True]
    assert rule.host_reasons(host_view(state), spec()) == ["", "does not report cpu", "does not report cpu, io"]
    assert rule.reason(spec()) == "do not report all of the metrics cpu, io"
    assert not Metrics(MetricsOptions()).concerns(spec())


def test_invalid_ratio_is_ignored_with_a_warning():
    rule = Metrics(MetricsOptions(weight_setting=("io",)))
    assert not rule.concerns(spec())
    assert len(rule.warnings(host_view(fleet(HostFacts())), spec())) == 1
