from roost.model.host import HostFacts
from roost.scheduler.filters.metrics import Metrics, MetricsOptions
from roost.scheduler.metrics import ratios
from tests.fleets import fleet, hosts_of, spec


def test_hosts_report_every_metric_that_is_weighed():
    rule = Metrics(MetricsOptions(weight_setting=("cpu=1", "io=-0.5")))
    state = fleet(HostFacts(metrics={"cpu": 0.0, "io": 1.0, "x": 1.0}), HostFacts(metrics={"io": 1.0}), HostFacts())
    assert rule.keep(hosts_of(state), spec()).tolist() == [True, False, False]
    assert rule.keep(hosts_of(state, [2, 0]), spec()).tolist() == [False, True]
    assert rule.tell(hosts_of(state), spec()) == ["", "does not report cpu", "does not report cpu, io"]
    assert rule.reason(spec()) == "do not report all of the metrics cpu, io"
    assert not Metrics(MetricsOptions()).concerns(spec())


def test_what_is_no_ratio_is_passed_over_with_a_warning():
    found = ratios(["cpu = 1", "io", "disk=much", "=2", "net=nan", "cpu=3"])
    assert found.of == {"cpu": 3.0}
    assert found.warnings[1] == "metrics.weight_setting: 'disk=much' is not name=ratio and is passed over"
    assert len(found.warnings) == 4
    rule = Metrics(MetricsOptions(weight_setting=("io",)))
    assert not rule.concerns(spec())
