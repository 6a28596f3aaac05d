import pytest

from roost.model.host import HostFacts
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.weighers.image_properties import ImageProperties, ImagePropertiesWeights
from tests.support.fleets.fleets import add_instance, fleet, host_view, spec

DEBIAN = {"os_distro": "debian", "hw_machine_type": "q35"}
FEDORA = {"os_distro": "fedora", "hw_machine_type": "q35"}


def rule(*setting, multiplier=1.0):
    """Return the weigher, turned on by default."""
    options = ImagePropertiesWeights(image_props_weight_multiplier=multiplier, image_props_weight_setting=setting)
    return ImageProperties(options)


@pytest.fixture
def state():
    """Three hosts: one with a Debian and a Fedora instance, one with two Debian instances, one empty."""
    new_state = fleet(HostFacts(), HostFacts(), HostFacts())
    for row, image in ((0, DEBIAN), (0, FEDORA), (1, DEBIAN), (1, DEBIAN)):
        add_instance(new_state, row, image)
    return new_state


@pytest.mark.parametrize(
    ("setting", "weights"),
    [
        ((), [3.0, 4.0, 0.0]),
        (("os_distro=2", "hw_machine_type=-0.5"), [1.0, 3.0, 0.0]),
        (("hw_machine_type=1",), [2.0, 2.0, 0.0]),
    ],
)
def test_weight_counts_instances_with_the_same_property(state, setting, weights):
    assert rule(*setting).raw(host_view(state), spec(image=DEBIAN)).tolist() == weights


def test_new_instance_counts_at_once(state):
    request = spec(image={"os_distro": "fedora"})
    assert rule().raw(host_view(state), request).tolist() == [1.0, 0.0, 0.0]
    add_instance(state, 2, FEDORA)
    assert rule().raw(host_view(state), request).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.shows("S011")
def test_old_and_new_names_of_a_property_match():
    state = fleet(HostFacts(), HostFacts())
    add_instance(state, 1, {"architecture": "x86_64"})
    assert rule().raw(host_view(state), spec(image={"hw_architecture": "x86_64"})).tolist() == [0.0, 1.0]


def test_property_values_are_normalized_before_comparison():
    state = fleet(HostFacts(), HostFacts())
    add_instance(state, 0, {"architecture": "AMD64", "hw_boot_menu": "yes", "hw_cpu_sockets": "02", "color": "Red"})
    request = spec(image={"hw_architecture": "x86_64", "hw_boot_menu": "True", "hw_cpu_sockets": "2", "color": "red"})
    assert rule().raw(host_view(state), request).tolist() == [3.0, 0.0]
    add_instance(state, 1, {"hw_architecture": "x86_64"})
    add_instance(state, 1, {"hw_architecture": "x86_64", "hw_boot_menu": "off"})
    assert rule("hw_architecture=1").raw(host_view(state), request).tolist() == [1.0, 2.0]
    assert rule("hw_boot_menu=1").raw(host_view(state), request).tolist() == [1.0, 0.0]


def test_weigher_is_off_by_default_and_aggregates_set_multipliers():
    assert ImagePropertiesWeights().image_props_weight_multiplier == 0.0
    assert not rule(multiplier=0.0).concerns(spec(image=DEBIAN))
    state = fleet(HostFacts(), HostFacts(), aggregates=[({"image_props_weight_multiplier": "0"}, [0])])
    add_instance(state, 0, DEBIAN)
    add_instance(state, 1, DEBIAN)
    add_instance(state, 1, DEBIAN)
    request = spec(image={"os_distro": "debian"})
    assert ScoreTable(state, request, [rule(multiplier=-2.0)]).weigh(None, request).totals.tolist() == [0.0, -2.0]


def test_does_not_concern_requests_without_a_weighed_property():
    assert not rule().concerns(spec())
    assert not rule().concerns(spec(image={}))
    assert not rule("other=1").concerns(spec(image=DEBIAN))


def test_invalid_weight_setting_is_ignored_with_a_warning():
    (warning,) = rule("os_distro").warnings(host_view(fleet(HostFacts())), spec())
    assert (
        warning == "filter_scheduler.image_props_weight_setting: 'os_distro' is ignored, because it is not name=number"
    )
