import pytest

from roost.model.host import HostFacts
from roost.scheduler.filters.image_properties import ImageProperties, ImagePropertiesOptions
from tests.support.fleets.fleets import fleet, hosts_of, spec

KVM = HostFacts(
    supported_instances=(("x86_64", "kvm", "hvm"), ("i686", "kvm", "hvm")),
    hypervisor_version=6002000,
    cpu_info={"maxphysaddr": {"bits": 46}},
)
XEN = HostFacts(supported_instances=(("x86_64", "xen", "xen"),), hypervisor_version=4001000)
MUTE = HostFacts()


def kept(image, default=""):
    rule = ImageProperties(ImagePropertiesOptions(image_properties_default_architecture=default))
    wanted = spec(image=image)
    if not rule.concerns(wanted):
        return [True, True, True]
    return rule.keep(hosts_of(fleet(KVM, XEN, MUTE)), wanted).tolist()


@pytest.mark.shows("S011", "S018")
@pytest.mark.parametrize(
    ("image", "verdicts"),
    [
        ({"hw_architecture": "AMD64"}, [True, True, False]),
        ({"hw_architecture": "i586"}, [True, False, False]),
        ({"architecture": "x86", "hypervisor_type": "KVM"}, [True, False, False]),
        ({"hw_vm_mode": "pv"}, [False, True, False]),
        ({"img_hv_type": "xapi", "hw_vm_mode": "hvm"}, [False, False, False]),
        ({"hw_architecture": "x86_64", "img_hv_requested_version": ">=6.2,<7.0"}, [True, False, False]),
        ({"hw_architecture": "x86_64", "img_hv_requested_version": "nonsense"}, [False, False, False]),
        ({"hw_architecture": "x86_64", "hw_maxphysaddr_bits": "47"}, [False, True, False]),
        ({"img_hv_requested_version": ">=99"}, [True, True, True]),
        ({}, [True, True, True]),
        (None, [True, True, True]),
    ],
)
def test_a_host_must_support_what_the_image_names(image, verdicts):
    assert kept(image) == verdicts


def test_the_default_architecture_stands_in_for_one_the_image_does_not_name():
    assert kept(None, default="i686") == [True, False, False]
    assert kept({"hw_architecture": "x86_64"}, default="i686") == [True, True, False]


def test_the_reason_names_what_was_wanted():
    rule = ImageProperties(ImagePropertiesOptions())
    image = {"hw_architecture": "amd64", "img_hv_type": "kvm", "img_hv_requested_version": ">=6"}
    assert rule.reason(spec(image=image)) == "cannot run x86_64, kvm images that want hypervisor version >=6"


@pytest.mark.shows("S011")
def test_an_architecture_that_is_none_is_warned_of():
    rule = ImageProperties(ImagePropertiesOptions())
    (warning,) = rule.warnings(hosts_of(fleet(KVM)), spec(image={"architecture": "arm"}))
    assert warning == "image property hw_architecture='arm' is not an architecture; for ARM use armv7l or aarch64"
    assert rule.warnings(hosts_of(fleet(KVM)), spec(image={"architecture": "armv7l"})) == []
    assert rule.warnings(hosts_of(fleet(KVM)), spec()) == []
