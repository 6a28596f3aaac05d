import pytest

from roost.model.host import HostFacts
from roost.scheduler.filters.image_properties import ImageProperties, ImagePropertiesOptions
from tests.support.fleets.fleets import fleet, host_view, spec

KVM = HostFacts(
    supported_instances=(("x86_64", "kvm", "hvm"), ("i686", "kvm", "hvm")),
    hypervisor_version=6002000,
    cpu_info={"maxphysaddr": {"bits": 46}},
)
XEN = HostFacts(supported_instances=(("x86_64", "xen", "xen"),), hypervisor_version=4001000)
UNKNOWN = HostFacts()


def verdicts_of(image, default=""):
    rule = ImageProperties(ImagePropertiesOptions(image_properties_default_architecture=default))
    request = spec(image=image)
    if not rule.concerns(request):
        return [True, True, True]
    return rule.keep(host_view(fleet(KVM, XEN, UNKNOWN)), request).tolist()


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
def test_host_must_support_the_image_properties(image, verdicts):
    assert verdicts_of(image) == verdicts


def test_default_architecture_applies_to_images_without_one():
    assert verdicts_of(None, default="i686") == [True, False, False]
    assert verdicts_of({"hw_architecture": "x86_64"}, default="i686") == [True, True, False]


def test_reason_names_the_required_properties():
    rule = ImageProperties(ImagePropertiesOptions())
    image = {"hw_architecture": "amd64", "img_hv_type": "kvm", "img_hv_requested_version": ">=6"}
    assert rule.reason(spec(image=image)) == "cannot run x86_64, kvm images that require hypervisor version >=6"


@pytest.mark.shows("S011")
def test_unknown_architecture_is_a_warning():
    rule = ImageProperties(ImagePropertiesOptions())
    (warning,) = rule.warnings(host_view(fleet(KVM)), spec(image={"architecture": "arm"}))
    assert warning == "image property hw_architecture='arm' is not an architecture; for ARM use armv7l or aarch64"
    assert rule.warnings(host_view(fleet(KVM)), spec(image={"architecture": "armv7l"})) == []
    assert rule.warnings(host_view(fleet(KVM)), spec()) == []
