"""Resource classes and traits of PCI devices in Placement."""

from roost.model.devices.device_names import class_of_device, traits_of_device


def test_device_class_is_the_configured_name_or_vendor_and_product():
    assert class_of_device("", vendor_id="10de", product_id="1db4") == "CUSTOM_PCI_10DE_1DB4"
    assert class_of_device("my gpu--x", vendor_id="10de", product_id="1db4") == "CUSTOM_MY_GPU_X"
    assert class_of_device("CUSTOM_A", vendor_id="", product_id="") == "CUSTOM_A"
    assert class_of_device("vgpu", vendor_id="", product_id="") == "VGPU"


def test_device_traits_are_standard_or_custom():
    assert traits_of_device("hw_gpu_api_vulkan, big one,,CUSTOM_A") == [
        "CUSTOM_A",
        "CUSTOM_BIG_ONE",
        "HW_GPU_API_VULKAN",
    ]
    assert traits_of_device("") == []
