import pytest

from roost.errors import ComputeHostMetricNotFound
from roost.model.host import HostFacts
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.weighers.metrics import Metrics, MetricsOptions
from tests.support.fleets.fleets import fleet, hosts_of, spec

HOSTS = (HostFacts(metrics={"cpu.percent": 10.0, "heat": 2.0}), HostFacts(metrics={"heat": 3.0}), HostFacts())


def rule(*setting, **options):
    """Give the weigher with these metrics."""
    return Metrics(MetricsOptions(weight_setting=setting, **options))


def raw(state, made):
    """Give its raw weights."""
    return made.raw(hosts_of(state), spec()).tolist()


@pytest.mark.shows("S090", "S100")
def test_metrics_are_added_up_by_their_ratios():
    assert raw(fleet(HOSTS[0]), rule("cpu.percent=-1", "heat = 0.5")) == [-9.0]


def test_without_a_metric_that_counts_it_concerns_no_request():
    assert not rule().concerns(spec())
    assert not rule("heat").concerns(spec())
    assert rule("heat=0").concerns(spec())


@pytest.mark.shows("S161")
def test_a_host_that_lacks_a_metric_goes_last_where_none_is_required():
    made = rule("heat=1", "cpu.percent=1", required=False, weight_of_unavailable=-7.0)
    assert raw(fleet(*HOSTS), made) == [12.0, -7.0, -7.0]


def test_a_metric_without_weight_may_be_missing():
    assert raw(fleet(*HOSTS), rule("heat=1", "cpu.percent=0", required=False)) == [2.0, 3.0, -10000.0]
    assert raw(fleet(*HOSTS), rule("heat=1", "cpu.percent=1", required=False, weight_multiplier=0.0)) == [
        12.0,
        3.0,
        0.0,
    ]


def test_the_weight_of_a_missing_metric_is_that_of_the_hosts_own_aggregates():
    state = fleet(*HOSTS, aggregates=[({"metrics_weight_multiplier": "0"}, [1]), ({"weight_multiplier": "0"}, [2])])
    assert raw(state, rule("heat=1", "cpu.percent=1", required=False)) == [12.0, 3.0, -10000.0]


@pytest.mark.shows("S161", "S206")
@pytest.mark.parametrize("multiplier", [1.0, 0.0])
def test_a_required_metric_that_a_host_lacks_is_an_error_that_names_both(multiplier):
    state = fleet(*HOSTS)
    made = rule("heat=1", "cpu.percent=1", weight_multiplier=multiplier)
    weighing = ScoreTable(state, spec(), [made])
    with pytest.raises(ComputeHostMetricNotFound) as error:
        weighing.weigh(None, spec())
    assert str(error.value) == "Metric cpu.percent could not be found on the compute host node host-2.node-2."
    assert (error.value.host, error.value.node, error.value.name) == ("host-2", "node-2", "cpu.percent")
    assert not weighing.is_local


def test_hosts_that_were_refused_need_no_metrics():
    state = fleet(HOSTS[0], HOSTS[2], HOSTS[0])
    rows = hosts_of(state).rows[[0, 2]]
    assert ScoreTable(state, spec(), [rule("heat=1")]).weigh(rows, spec()).totals.tolist() == [0.0, 0.0]


@pytest.mark.shows("S219")
def test_what_is_no_ratio_is_dropped_and_said():
    made = rule("heat=1", "noise", "=2", "wind=strong", "rain=nan", "heat=0.5")
    assert made.warnings(hosts_of(fleet(*HOSTS)), spec()) == [
        f"metrics.weight_setting: {pair!r} is ignored, because it is not name=number"
        for pair in ("noise", "=2", "wind=strong", "rain=nan")
    ]
    assert raw(fleet(HOSTS[0]), made) == [3.0]


@pytest.mark.shows("S160")
def test_a_metric_that_nobody_reports_is_warned_of_unless_a_monitor_could():
    made = rule("heat=1", "cpu.frequency=1", "cpu.percnt=1")
    (warning,) = made.warnings(hosts_of(fleet(*HOSTS)), spec())
    assert warning == "metrics.weight_setting: no host reports 'cpu.percnt', and it is no metric of Nova's monitors"


def test_where_no_two_hosts_differ_it_is_left_out():
    assert ScoreTable(fleet(HOSTS[0], HOSTS[0]), spec(), [rule("heat=1")]).names == []
    assert ScoreTable(fleet(HOSTS[0], HOSTS[1]), spec(), [rule("heat=1")]).names == ["metrics"]


@pytest.mark.shows("S160")
def test_the_metrics_of_nova_s_monitors_are_known_by_name():
    known = [
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
    made = rule(*(f"{name}={number}" for number, name in enumerate(known, start=1)))
    assert made.warnings(hosts_of(fleet(HostFacts())), spec()) == []
    assert raw(fleet(HostFacts(metrics=dict.fromkeys(known, 1.0))), made) == [78.0]
