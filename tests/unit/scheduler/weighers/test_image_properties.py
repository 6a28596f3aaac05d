import pytest

from roost.model.host import HostFacts
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.weighers.image_properties import ImageProperties, ImagePropertiesWeights
from tests.support.fleets.fleets import boot, fleet, hosts_of, spec

DEBIAN = {"os_distro": "debian", "hw_machine_type": "q35"}
FEDORA = {"os_distro": "fedora", "hw_machine_type": "q35"}


def rule(*setting, multiplier=1.0):
    """Give the weigher, on unless told otherwise."""
    options = ImagePropertiesWeights(image_props_weight_multiplier=multiplier, image_props_weight_setting=setting)
    return ImageProperties(options)


@pytest.fixture
def state():
    """Give two hosts: one with a Debian and a Fedora, one with two Debians."""
    made = fleet(HostFacts(), HostFacts(), HostFacts())
    for row, image in ((0, DEBIAN), (0, FEDORA), (1, DEBIAN), (1, DEBIAN)):
        boot(made, row, image)
    return made


@pytest.mark.parametrize(
    ("setting", "weights"),
    [
        ((), [3.0, 4.0, 0.0]),
        (("os_distro=2", "hw_machine_type=-0.5"), [1.0, 3.0, 0.0]),
        (("hw_machine_type=1",), [2.0, 2.0, 0.0]),
    ],
)
def test_each_property_counts_as_often_as_instances_have_it(state, setting, weights):
    assert rule(*setting).raw(hosts_of(state), spec(image=DEBIAN)).tolist() == weights


def test_an_instance_that_comes_counts_at_once(state):
    asked = spec(image={"os_distro": "fedora"})
    assert rule().raw(hosts_of(state), asked).tolist() == [1.0, 0.0, 0.0]
    boot(state, 2, FEDORA)
    assert rule().raw(hosts_of(state), asked).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.shows("S011")
def test_old_and_present_names_of_a_property_are_one():
    state = fleet(HostFacts(), HostFacts())
    boot(state, 1, {"architecture": "x86_64"})
    assert rule().raw(hosts_of(state), spec(image={"hw_architecture": "x86_64"})).tolist() == [0.0, 1.0]


def test_values_are_compared_in_their_one_spelling():
    state = fleet(HostFacts(), HostFacts())
    boot(state, 0, {"architecture": "AMD64", "hw_boot_menu": "yes", "hw_cpu_sockets": "02", "color": "Red"})
    asked = spec(image={"hw_architecture": "x86_64", "hw_boot_menu": "True", "hw_cpu_sockets": "2", "color": "red"})
    assert rule().raw(hosts_of(state), asked).tolist() == [3.0, 0.0]
    boot(state, 1, {"hw_architecture": "x86_64"})
    boot(state, 1, {"hw_architecture": "x86_64", "hw_boot_menu": "off"})
    assert rule("hw_architecture=1").raw(hosts_of(state), asked).tolist() == [1.0, 2.0]
    assert rule("hw_boot_menu=1").raw(hosts_of(state), asked).tolist() == [1.0, 0.0]


def test_it_is_off_unless_the_option_says_otherwise_whatever_aggregates_say():
    assert ImagePropertiesWeights().image_props_weight_multiplier == 0.0
    assert not rule(multiplier=0.0).concerns(spec(image=DEBIAN))
    state = fleet(HostFacts(), HostFacts(), aggregates=[({"image_props_weight_multiplier": "0"}, [0])])
    boot(state, 0, DEBIAN)
    boot(state, 1, DEBIAN)
    boot(state, 1, DEBIAN)
    asked = spec(image={"os_distro": "debian"})
    assert ScoreTable(state, asked, [rule(multiplier=-2.0)]).weigh(None, asked).totals.tolist() == [0.0, -2.0]


def test_requests_without_a_property_that_counts_do_not_concern_it():
    assert not rule().concerns(spec())
    assert not rule().concerns(spec(image={}))
    assert not rule("other=1").concerns(spec(image=DEBIAN))


def test_what_is_no_weight_is_dropped_and_said():
    (warning,) = rule("os_distro").warnings(hosts_of(fleet(HostFacts())), spec())
    assert (
        warning == "filter_scheduler.image_props_weight_setting: 'os_distro' is ignored, because it is not name=number"
    )
