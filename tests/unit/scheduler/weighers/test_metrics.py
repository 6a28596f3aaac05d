import pytest

from roost.errors import ComputeHostMetricNotFound
from roost.model.host import HostFacts
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.weighers.metrics import Metrics, MetricsOptions
from tests.support.fleets.fleets import fleet, host_view, spec

HOSTS = (HostFacts(metrics={"cpu.percent": 10.0, "heat": 2.0}), HostFacts(metrics={"heat": 3.0}), HostFacts())


def rule(*setting, **options):
    """Return the weigher with these metrics."""
    return Metrics(MetricsOptions(weight_setting=setting, **options))


def raw(state, weigher):
    """Return the raw weights of the hosts."""
    return weigher.raw(host_view(state), spec()).tolist()


@pytest.mark.shows("S090", "S100")
def test_weight_is_the_sum_of_metrics_times_their_ratios():
    assert raw(fleet(HOSTS[0]), rule("cpu.percent=-1", "heat = 0.5")) == [-9.0]


def test_concerns_no_request_without_a_configured_metric():
    assert not rule().concerns(spec())
    assert not rule("heat").concerns(spec())
    assert rule("heat=0").concerns(spec())


@pytest.mark.shows("S161")
def test_missing_optional_metric_gives_the_unavailable_weight():
    weigher = rule("heat=1", "cpu.percent=1", required=False, weight_of_unavailable=-7.0)
    assert raw(fleet(*HOSTS), weigher) == [12.0, -7.0, -7.0]


def test_metric_with_zero_weight_may_be_missing():
    assert raw(fleet(*HOSTS), rule("heat=1", "cpu.percent=0", required=False)) == [2.0, 3.0, -10000.0]
    assert raw(fleet(*HOSTS), rule("heat=1", "cpu.percent=1", required=False, weight_multiplier=0.0)) == [
        12.0,
        3.0,
        0.0,
    ]


def test_zero_aggregate_multiplier_allows_a_missing_metric():
    state = fleet(*HOSTS, aggregates=[({"metrics_weight_multiplier": "0"}, [1]), ({"weight_multiplier": "0"}, [2])])
    assert raw(state, rule("heat=1", "cpu.percent=1", required=False)) == [12.0, 3.0, -10000.0]


@pytest.mark.shows("S161", "S206")
@pytest.mark.parametrize("multiplier", [1.0, 0.0])
def test_missing_required_metric_error_names_metric_and_host(multiplier):
    state = fleet(*HOSTS)
    weigher = rule("heat=1", "cpu.percent=1", weight_multiplier=multiplier)
    table = ScoreTable(state, spec(), [weigher])
    with pytest.raises(ComputeHostMetricNotFound) as error:
        table.weigh(None, spec())
    assert str(error.value) == "Metric cpu.percent could not be found on the compute host node host-2.node-2."
    assert (error.value.host, error.value.node, error.value.name) == ("host-2", "node-2", "cpu.percent")
    assert not table.is_local


def test_refused_hosts_need_no_metrics():
    state = fleet(HOSTS[0], HOSTS[2], HOSTS[0])
    rows = host_view(state).rows[[0, 2]]
    assert ScoreTable(state, spec(), [rule("heat=1")]).weigh(rows, spec()).totals.tolist() == [0.0, 0.0]


@pytest.mark.shows("S219")
def test_invalid_ratio_is_ignored_with_a_warning():
    weigher = rule("heat=1", "noise", "=2", "wind=strong", "rain=nan", "heat=0.5")
    assert weigher.warnings(host_view(fleet(*HOSTS)), spec()) == [
        f"metrics.weight_setting: {pair!r} is ignored, because it is not name=number"
        for pair in ("noise", "=2", "wind=strong", "rain=nan")
    ]
    assert raw(fleet(HOSTS[0]), weigher) == [3.0]


@pytest.mark.shows("S160")
def test_unreported_metric_is_a_warning_unless_nova_knows_it():
    weigher = rule("heat=1", "cpu.frequency=1", "cpu.percnt=1")
    (warning,) = weigher.warnings(host_view(fleet(*HOSTS)), spec())
    assert warning == "metrics.weight_setting: no host reports 'cpu.percnt', and Nova's monitors do not define it"


def test_weigher_is_omitted_if_all_hosts_are_equal():
    assert ScoreTable(fleet(HOSTS[0], HOSTS[0]), spec(), [rule("heat=1")]).names == []
    assert ScoreTable(fleet(HOSTS[0], HOSTS[1]), spec(), [rule("heat=1")]).names == ["metrics"]


@pytest.mark.shows("S160")
def test_metrics_of_nova_monitors_cause_no_warning():
    names = [
        "cpu.frequency",
        "cpu.user.time",
        "cpu.kernel.time",
        "cpu.idle.time",
        "cpu.iowait.time",
        "cpu.user.percent",
        "cpu.kernel.percent",
        "cpu.idle.percent",
        "cpu.iowait.percent",
        "cpu.percent",
        "numa.membw.max",
        "numa.membw.current",
    ]
    weigher = rule(*(f"{name}={number}" for number, name in enumerate(names, start=1)))
    assert weigher.warnings(host_view(fleet(HostFacts())), spec()) == []
    assert raw(fleet(HostFacts(metrics=dict.fromkeys(names, 1.0))), weigher) == [78.0]
