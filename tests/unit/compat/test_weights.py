from types import SimpleNamespace

import pytest

from roost.compat.exception import ComputeHostMetricNotFound
from roost.compat.objects import RequestSpec
from roost.compat.scheduler import weights
from roost.compat.scheduler.host_state import HostAggregate, HostState
from roost.compat.weights import BaseWeigher, BaseWeightHandler, WeighedObject, normalize
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.scheduler.weighers.image_properties import ImagePropertiesWeights
from roost.scheduler.weighers.metrics import MetricsOptions
from roost.scheduler.weighers.ram import RamOptions

SPEC = RequestSpec(flavor=Flavor(name="f"))
VCPUS = [5, 5, 10, 10, 15, 20, 20, 15, 10, 5]


def state(name="h", **fields):
    return HostState(name, name, **fields)


@pytest.mark.shows("S143", "S145", "S192")
def test_normalisation_of_the_documented_example():
    scaled = [round(value, 2) for value in normalize(VCPUS)]
    assert scaled == [0, 0, 0.33, 0.33, 0.67, 1, 1, 0.67, 0.33, 0]


@pytest.mark.shows("S145", "S205")
def test_minval_is_the_lower_end_of_the_scale():
    hosts = [state(vcpus_total=count) for count in VCPUS]
    weigher = weights.CPUWeigher()
    raw = weigher.weigh_objects([WeighedObject(host, 0.0) for host in hosts], SPEC)
    scaled = list(normalize(raw, minval=weigher.minval, maxval=weigher.maxval))
    assert scaled == [0.25, 0.25, 0.5, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25]
    assert list(normalize([7, 7], minval=0)) == [1.0, 1.0]


@pytest.mark.shows("S143", "S144", "S192")
@pytest.mark.parametrize(("values", "scaled"), [([], []), ([3], [0]), ([3, 3], [0, 0]), ([-1, 1], [0, 1])])
def test_scale_ends_at_the_extremes_of_the_list(values, scaled):
    assert list(normalize(values)) == scaled


class Length(BaseWeigher):
    """Weighs a text by its length."""

    def _weigh_object(self, obj, weight_properties):
        return len(obj)


class OldLength(BaseWeigher):
    """Weighs a text by its length, with the old names of the methods."""

    def weight_multiplier(self):
        """Return two."""
        return 2.0

    def _weight_object(self, obj, weight_properties):
        return len(obj)


class Together(BaseWeigher):
    """Weighs all objects together."""

    def weight_objects(self, weighed_obj_list, weight_properties):
        """Count down."""
        return list(range(len(weighed_obj_list), 0, -1))


@pytest.mark.shows("S056", "S190", "S210")
def test_weights_are_summed_and_sorted_stably():
    ranking = BaseWeightHandler().get_weighed_objects([Length, OldLength()], ["bb", "a", "cc"], None)
    assert [(each.obj, each.weight) for each in ranking] == [("bb", 3.0), ("cc", 3.0), ("a", 0.0)]
    together = BaseWeightHandler().get_weighted_objects([Together], "abc", None)
    assert [each.obj for each in together] == ["a", "b", "c"]


@pytest.mark.shows("S210")
def test_weighers_do_not_run_for_fewer_than_two_objects():
    handler = BaseWeightHandler()
    assert handler.get_weighed_objects([BaseWeigher], [], None) == []
    assert [each.weight for each in handler.get_weighed_objects([BaseWeigher], ["a"], None)] == [0.0]
    with pytest.raises(NotImplementedError):
        handler.get_weighed_objects([BaseWeigher], ["a", "b"], None)


def test_raw_weights_are_clamped_to_the_bounds():
    clamped = type("Bounded", (Length,), {"minval": 2, "maxval": 3})
    assert clamped().weigh_objects([WeighedObject("x" * n, 0.0) for n in range(5)], None) == [2, 2, 2, 3, 3]


@pytest.mark.shows("S190", "S205")
def test_built_in_weighers_run_on_host_states():
    hosts = [state("a", free_ram_mb=10), state("b", free_ram_mb=20), state("c", free_ram_mb=-5)]
    ranking = weights.HostWeightHandler().get_weighed_objects([weights.RAMWeigher], hosts, SPEC)
    assert [(each.obj.host, each.weight) for each in ranking] == [("b", 1.0), ("a", 0.5), ("c", 0.0)]
    assert ranking[0].to_dict() == {"weight": 1.0, "host": "b"}


@pytest.mark.shows("S008")
def test_aggregate_sets_the_multiplier_of_its_hosts():
    def host_in_aggregates(*values):
        return state(
            aggregates=[HostAggregate(metadata={"build_failure_weight_multiplier": value}) for value in values]
        )

    weigher = weights.BuildFailureWeigher()
    assert [
        weigher.weight_multiplier(host)
        for host in (None, state(), host_in_aggregates("3", "2"), host_in_aggregates("x"))
    ] == [
        -1e6,
        -1e6,
        -2.0,
        -1e6,
    ]


@pytest.mark.shows("S052")
def test_all_weighers_have_their_nova_names():
    assert sorted(each.__name__ for each in weights.all_weighers()) == [
        "BuildFailureWeigher",
        "CPUWeigher",
        "CrossCellWeigher",
        "DiskWeigher",
        "HypervisorVersionWeigher",
        "ImagePropertiesWeigher",
        "IoOpsWeigher",
        "MetricsWeigher",
        "NumInstancesWeigher",
        "PCIWeigher",
        "RAMWeigher",
        "ServerGroupSoftAffinityWeigher",
        "ServerGroupSoftAntiAffinityWeigher",
    ]
    assert all(issubclass(each, weights.BaseHostWeigher) for each in weights.all_weighers())


def metrics(**options):
    return weights.MetricsWeigher(MetricsOptions(weight_setting=("cpu=2", "net= -1", "broken"), **options))


@pytest.mark.shows("S191", "S206")
@pytest.mark.parametrize(
    "values",
    [
        {"cpu": 3, "net": 1},
        [{"name": "cpu", "value": 3}, {"name": "net", "value": 1}],
        [SimpleNamespace(name="cpu", value=3), SimpleNamespace(name="net", value=1)],
        '[{"name": "cpu", "value": 3}, {"name": "net", "value": 1}]',
    ],
    ids=["table", "records", "objects", "text"],
)
def test_metrics_are_summed_by_their_ratios(values):
    assert metrics()._weigh_object(state(metrics=values), SPEC) == 5.0


@pytest.mark.shows("S161", "S162", "S206")
def test_missing_metric_is_an_error_or_the_lowest_weight():
    host = state(metrics={"cpu": 3})
    with pytest.raises(ComputeHostMetricNotFound, match=r"Metric net could not be found on the compute host node h\.h"):
        metrics()._weigh_object(host, SPEC)
    assert metrics(required=False)._weigh_object(host, SPEC) == -10000.0
    assert metrics(required=False, weight_multiplier=0.0)._weigh_object(host, SPEC) == 6.0
    host = state(metrics={"cpu": 3}, aggregates=[HostAggregate(metadata={"metrics_weight_multiplier": "0"})])
    assert metrics(required=False)._weigh_object(host, SPEC) == 6.0


def test_metric_missing_on_one_of_several_hosts_is_an_error():
    hosts = [state("a", metrics={"cpu": 1, "net": 1}), state("b", metrics={"net": 1})]
    handler = weights.HostWeightHandler()
    with pytest.raises(ComputeHostMetricNotFound, match=r"Metric cpu .* b\.b"):
        handler.get_weighed_objects([metrics()], hosts, SPEC)
    assert [each.obj.host for each in handler.get_weighed_objects([metrics()], hosts[1:], SPEC)] == ["b"]


@pytest.mark.shows("S102")
def test_pci_weigher_prefers_no_devices_then_the_fewest():
    """The example of three hosts: one device, many, none."""
    pool = {"vendor_id": "8086", "product_id": "154c", "dev_type": "type-VF", "numa_node": None, "devices": [object()]}
    hosts = [
        state("one", pci_stats=SimpleNamespace(pools=[pool | {"count": 1}])),
        state("many", pci_stats=[pool | {"count": 60, "physical_network": "a"}, pool | {"count": 60}]),
        state("none"),
    ]
    weigher = weights.PCIWeigher()
    assert weigher.weigh_objects([WeighedObject(host, 0.0) for host in hosts], SPEC) == [99.0, 1.0, 100.0]
    best = weights.HostWeightHandler().get_weighed_objects([weigher], hosts, SPEC)
    assert [each.obj.host for each in best] == ["none", "one", "many"]


def test_instances_with_similar_images_attract_each_other():
    debian, fedora = (Image(properties={"os_distro": name, "architecture": "x86_64"}) for name in ("debian", "fedora"))
    hosts = [
        state("a", instances={"1": SimpleNamespace(image_meta=debian), "2": None}),
        state("b", instances={"3": fedora, "4": fedora}),
    ]
    spec = RequestSpec(flavor=Flavor(name="f"), image=debian, instance_uuid="5")
    weigher = weights.ImagePropertiesWeigher(ImagePropertiesWeights(image_props_weight_multiplier=1.0))
    assert weigher.weigh_objects([WeighedObject(host, 0.0) for host in hosts], spec) == [2.0, 2.0]
    hosts[0].consume_from_request(spec)
    assert weigher.weigh_objects([WeighedObject(host, 0.0) for host in hosts], spec) == [4.0, 2.0]


class Boastful(weights.BaseHostWeigher):
    """Gives raw weights far larger than those of others."""

    def _weigh_object(self, host_state, weight_properties):
        return 1e12 if host_state.host == "b" else 0.0


@pytest.mark.shows("S096", "S142", "S146", "S221")
@pytest.mark.parametrize(("share", "order"), [(1.0, ["b", "a"]), (3.0, ["a", "b"]), (0.0, ["b", "a"])])
def test_share_of_a_weigher_is_its_multiplier_for_any_raw_weights(share, order):
    hosts = [state("a", free_ram_mb=4), state("b", free_ram_mb=2)]
    ram = weights.RAMWeigher(RamOptions(ram_weight_multiplier=share))
    ranking = weights.HostWeightHandler().get_weighed_objects([Boastful, ram], hosts, SPEC)
    assert [each.obj.host for each in ranking] == order
    assert {each.obj.host: each.weight for each in ranking} == {"a": 1.0 * share, "b": 1.0 + 0.5 * share}
