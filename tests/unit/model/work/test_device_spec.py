"""Device specs of operators: matching, tags and validation."""

import pytest

from roost.model.work.agent_terms import PciDevice
from roost.model.work.device_spec import DeviceSpec, read_device_specs


def device(address="0000:81:00.0", vendor="8086", product="154c", **more):
    return PciDevice(address=address, vendor_id=vendor, product_id=product, **more)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("{}", True),
        ('{"vendor_id": "8086", "product_id": "154C"}', True),
        ('{"vendor_id": "8086", "product_id": "*"}', True),
        ('{"vendor_id": "10de"}', False),
        ('{"address": "0000:81:00.0"}', True),
        ('{"address": "*:81:00.*"}', True),
        ('{"address": ":81:00."}', True),
        ('{"address": "81:0.0"}', True),
        ('{"address": "0000:81:00.1"}', False),
        ('{"address": "*:8:00.*"}', False),
        ('{"address": {"domain": ".*", "bus": "8[1-3]", "slot": "00", "function": "[0-7]"}}', True),
        ('{"address": {"bus": "82"}}', False),
    ],
)
def test_device_spec_matches_by_kind_and_address(text, fits):
    (spec,) = read_device_specs(text)
    assert spec.fits(device()) == fits


def test_virtual_function_matches_by_the_address_of_its_card():
    (spec,) = read_device_specs('{"address": "0000:81:00.0"}')
    assert spec.fits(device("0000:81:10.3", dev_type="type-VF", parent_address="0000:81:00.0"))
    assert not spec.fits(device("nowhere"))


def test_spec_without_address_matches_any_address():
    (spec,) = read_device_specs('{"vendor_id": "8086"}')
    assert spec.fits(device("nowhere"))


def test_device_spec_reads_class_traits_and_tags():
    text = (
        '[{"vendor_id": "10DE", "resource_class": "gpu", "traits": "big,fast", "live_migratable": "yes",'
        ' "managed": "no", "trusted": true, "remote_managed": "maybe",'
        ' "own": "Y"}, {"physical_network": null, "one_time_use": "false"}]'
    )
    assert read_device_specs(text) == (
        DeviceSpec(
            vendor_id="10de",
            resource_class="gpu",
            traits="big,fast",
            tags={"live_migratable": "true", "trusted": "true", "remote_managed": "maybe", "own": "Y"},
        ),
        DeviceSpec(tags={"one_time_use": "false"}),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nothing", "device_spec entry is not JSON"),
        ("7", "must be an object, or a list of objects"),
        ('{"devname": "eth0"}', "devname is not supported: use the address of the device"),
        ('{"one_time_use": true}', "one_time_use is not supported"),
        ('{"vendor_id": "80867"}', r"vendor_id must be four hexadecimal digits or \*"),
        ('{"traits": ["a"]}', "traits must be a text"),
        ('{"own": null}', "own must be a text"),
        ('{"physical_network": 7}', "physical_network must be a text"),
        ('{"address": 7}', "address must be a text, or an object"),
        ('{"address": {"bus": 7}}', "address must be a text, or an object"),
        ('{"address": {"card": "1"}}', "address must be a text, or an object"),
        ('{"address": "0:0:0:0.0"}', "address must be domain:bus:slot.function"),
        ('{"address": "0000:xx:00.0"}', "address must be domain:bus:slot.function"),
        ('{"address": {"bus": "["}}', "address is not a regular expression"),
    ],
)
def test_malformed_device_spec_is_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        read_device_specs(text)
