import pytest

from roost.model.image import Image
from roost.scheduler.framework.image_properties import image_property, matches_version, vm_mode
from roost.scheduler.framework.image_text import image_text


@pytest.mark.parametrize(
    ("predicates", "is_met"),
    [
        (">=1.5,<2.0", True),
        ("==1.7.3", True),
        ("!=1.7.3", False),
        ("<=1.7", False),
        (">1.7.2", True),
        ("<1.10", True),
        ("1.7.3", False),
        ("", False),
        (">=1.5,", False),
    ],
)
def test_version_must_match_every_predicate(predicates, is_met):
    assert matches_version((1, 7, 3), predicates) is is_met


def test_trailing_zeros_of_a_version_are_ignored():
    assert matches_version((6, 2, 0), "==6.2")


def test_old_property_name_is_used_if_the_new_one_is_absent():
    image = Image(properties={"vm_mode": "hvm", "architecture": "i386", "hw_architecture": "x86_64"})
    assert image_property(image, "hw_vm_mode") == "hvm"
    assert image_property(image, "hw_architecture") == "x86_64"
    assert image_property(None, "hw_architecture") is None


def test_vm_modes_are_normalized():
    assert [vm_mode(name) for name in ("HV", "pv", "baremetal", "uml", None)] == ["hvm", "xen", "hvm", "uml", None]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("hw_boot_menu", "yes", "True"),
        ("hw_boot_menu", "off", None),
        ("hw_cpu_sockets", "02", "2"),
        ("hw_cpu_sockets", "0", None),
        ("hw_cpu_sockets", "two", "two"),
        ("hw_architecture", "AMD64", "x86_64"),
        ("os_type", "Linux", "linux"),
        ("os_distro", "Größe", "Größe"),
        ("os_distro", "", None),
        ("color", "red", None),
    ],
)
def test_image_property_text_is_normalized(name, value, text):
    assert image_text(Image(properties={name: value}), name) == text
    assert image_text(None, name) is None
