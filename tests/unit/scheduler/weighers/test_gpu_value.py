import pytest

from roost.cli.text.why_text import explanation_lines
from roost.errors import BadSettings
from roost.model.evidence.explain import Preference
from roost.model.request import ResourceGroup
from roost.scheduler import registry
from roost.scheduler.weighers.gpu_value import GpuValue, GpuValueOptions
from tests.support.fleets.fleets import host_view, hosts, spec
from tests.support.fleets.gpu_fleets import GPU, gpu_fleet, gpu_host, gpu_request, gpu_settings
from tests.support.fleets.worlds import chosen_hosts, roost_with, settings_of


def gpus_of(roost, decision):
    """Return the names of the GPUs of a decision."""
    providers = roost.state.providers
    names = [providers.names[providers.row_of_uuid[uuid]] for pick in decision.picks for uuid in pick.allocations]
    return sorted(name for name in names if "gpu" in name)


def learn_mix(roost):
    """Let the weigher learn that requests are for 600 and, more often, 400 units: each is worth half a GPU."""
    for _ in range(25):
        roost.work([gpu_request(600), *[gpu_request(400)] * 3])


def test_weigher_is_off_by_default():
    assert GpuValue(GpuValueOptions()).multiplier == 0.0


def test_hosts_without_gpus_weigh_nothing():
    weigher = GpuValue(GpuValueOptions(gpu_value_weight_multiplier=1.0))
    assert weigher.raw(hosts(vcpus_total=[4.0, 8.0]), spec()).tolist() == [0.0, 0.0]


def test_equal_hosts_are_filled_in_the_order_of_the_fleet():
    roost = roost_with(gpu_fleet(3), settings=gpu_settings())
    assert chosen_hosts(roost.decide(gpu_request(500))) == ["h0"]
    assert chosen_hosts(roost.decide(gpu_request(500))) == ["h0"]


def test_instances_without_gpus_spare_the_processors_beside_free_gpus():
    roost = roost_with(
        gpu_host("lean", 1000, 1000, vcpus=16), gpu_host("rich", 1000, 1000, vcpus=64), settings=gpu_settings()
    )
    assert chosen_hosts(roost.decide(gpu_request(0, vcpus=8))) == ["rich"]


def test_a_gpu_is_cut_where_the_usual_requests_lose_nothing():
    """Requests for 500 still fit once on 1,000, 900 and 700 free units. Only of 900 units can 300 be spared."""
    roost = roost_with(gpu_fleet(40), gpu_host("last", 1000, 700, 900), settings=gpu_settings())
    for _ in range(100):
        roost.work([gpu_request(500)])
    found = [gpus_of(roost, roost.decide(gpu_request(300, force_hosts=("last",)))) for _ in range(2)]
    assert found == [["last-gpu2"], ["last-gpu0"]]


def test_a_hole_that_no_request_fits_costs_its_size():
    """A free part of 700 was short of its amount by 200, and the hole of 100 that 600 leave is worth nothing."""
    roost = roost_with(gpu_fleet(40), gpu_host("narrow", 700), gpu_host("wide", 1000), settings=gpu_settings())
    learn_mix(roost)
    wanted = roost.scheduler.compile_shape(gpu_request(600)).spec
    rows = [roost.state.hosts.names.index(name) for name in ("narrow", "wide", "h39")]
    weights = roost.rules.weighers[0].raw(host_view(roost.state, rows), wanted)
    assert weights.tolist() == pytest.approx([0.1, 0.1, 0.1])
    wanted = roost.scheduler.compile_shape(gpu_request(700)).spec
    assert roost.rules.weighers[0].raw(host_view(roost.state, rows), wanted).tolist() == pytest.approx(
        [0.2, -0.3, -0.3]
    )


def test_the_model_of_a_gpu_counts():
    wanted = gpu_request(500)
    group = ResourceGroup(suffix="_G0", resources={GPU: 500}, required=(frozenset({"CUSTOM_FAST"}),))
    fast = type(wanted)(flavor=wanted.flavor, groups=(group,))
    roost = roost_with(gpu_host("slow", 1000), gpu_host("fast", 1000, traits=["CUSTOM_FAST"]), settings=gpu_settings())
    assert chosen_hosts(roost.decide(fast)) == ["fast"]


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("gpu_value_weight_multiplier", -1.0, "must be a number >= 0"),
        ("gpu_value_weight_multiplier", "much", "must be a number"),
        ("gpu_value_weight_multiplier", float("inf"), "must be a finite number"),
        ("gpu_value_resource_class", "gpu", "must be a standard resource class or CUSTOM_"),
        ("gpu_value_resource_class", 3, "must be a text"),
    ],
)
def test_bad_options_are_refused(option, value, problem):
    with pytest.raises(BadSettings, match=problem):
        registry.build(settings_of(options={option: value}))


def test_why_names_the_gpus_that_the_best_host_spares():
    roost = roost_with(
        gpu_host("lean", 1000, 1000, vcpus=16), gpu_host("rich", 1000, 1000, vcpus=64), settings=gpu_settings()
    )
    decision = roost.decide(gpu_request(0, vcpus=8))
    explanation = roost.why(decision.uuid).explanation
    assert explanation.preferences == [
        Preference(weigher="gpu_value", host="rich", text="strands 0.38 GPUs less", other="lean")
    ]
    assert "gpu_value: rich strands 0.38 GPUs less than lean" in list(explanation_lines(explanation))


def test_equal_hosts_are_not_compared():
    roost = roost_with(gpu_fleet(3), settings=gpu_settings())
    assert roost.why(roost.decide(gpu_request(500)).uuid).explanation.preferences == []
