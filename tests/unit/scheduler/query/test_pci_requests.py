import pytest

from roost.errors import BadRequest, BadSettings
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Request, ResourceGroup
from roost.model.settings.roost_settings import Pci
from roost.scheduler.query.pci_requests import PciAliases, device_groups
from roost.settings import read_settings

GPU = '{"name": "gpu", "vendor_id": "10de", "product_id": "1db6", "device_type": "type-PCI", "numa_policy": "required"}'
OTHER = GPU.replace("1db6", "20b5")
NIC = '{"name": " nic ", "vendor_id": "8086", "product_id": "154c", "live_migratable": "Yes"}'
ALIASES = PciAliases(Pci(alias=(GPU, OTHER, NIC)))


def requests_for(alias=None, *, image=None, pci_requests=(), **specs):
    """Return the PCI requests of a flavor with this alias extra spec."""
    extra_specs = {} if alias is None else {"pci_passthrough:alias": alias}
    extra_specs |= {name.replace("_", ":", 1): text for name, text in specs.items()}
    flavor = Flavor(name="small", vcpus=1, memory_mb=512, extra_specs=extra_specs)
    image = None if image is None else Image(properties=image)
    return ALIASES.requests(Request(flavor=flavor, image=image, pci_requests=pci_requests))


def test_alias_entries_of_one_name_are_alternatives():
    (gpu,) = requests_for("gpu:2")
    assert (gpu.count, gpu.name, gpu.numa_policy, gpu.request_id) == (2, "gpu", "required", "pci0")
    assert [each["product_id"] for each in gpu.alternatives] == ["1db6", "20b5"]
    assert gpu.alternatives[0] == {"vendor_id": "10de", "product_id": "1db6", "dev_type": "type-PCI"}


def test_flavor_aliases_and_port_requests_are_combined():
    port = PciRequest(alternatives=({"physical_network": "red"},), source="port")
    first, second, last = requests_for(" nic : 1 ,gpu:3", pci_requests=(port,))
    assert (first.name, first.alternatives[0]["live_migratable"], first.numa_policy) == ("nic", "true", "legacy")
    assert (second.name, second.count, second.request_id) == ("gpu", 3, "pci1")
    assert last == port
    assert requests_for() == ()


def test_flavor_or_image_overrides_the_numa_policy():
    assert requests_for("gpu:1", hw_pci_numa_affinity_policy="socket")[0].numa_policy == "socket"
    assert requests_for("gpu:1", image={"hw_pci_numa_affinity_policy": "preferred"})[0].numa_policy == "preferred"
    with pytest.raises(BadRequest, match="'near' is not a valid value of"):
        requests_for("gpu:1", hw_pci_numa_affinity_policy="near")


@pytest.mark.parametrize("alias", ["gpu", "gpu:0", "gpu:-1", "gpu:x", "", "gpu:1,", "gpu:1:2", "gpu:2147483648"])
def test_malformed_alias_spec_is_refused(alias):
    with pytest.raises(BadRequest, match=r"must be alias:count\[,alias:count…\] with counts from 1"):
        requests_for(alias)


def test_an_unknown_alias_is_refused():
    with pytest.raises(BadRequest, match="names 'fpga', which is not an alias in the settings"):
        requests_for("gpu:1,fpga:1")


def test_each_device_of_a_flavor_is_a_resource_group():
    device_id = {"vendor_id": "10de", "product_id": "1db6"}
    request = PciRequest(alternatives=(device_id,), count=2, request_id="r")
    port = PciRequest(alternatives=(device_id,), source="port")
    expected = [ResourceGroup(suffix=f"r-{at}", resources={"CUSTOM_PCI_10DE_1DB6": 1}) for at in (0, 1)]
    assert list(device_groups([port, request])) == expected


@pytest.mark.parametrize(
    ("name", "resource_class"),
    [("my gpu--x", "CUSTOM_MY_GPU_X"), ("vgpu", "VGPU"), ("custom_a", "CUSTOM_A"), ("größe", "CUSTOM_GR_SSE")],
)
def test_class_and_trait_names_are_normalized_for_placement(name, resource_class):
    traits = "blue,HW_CPU_X86_AVX, my trait ,"
    request = PciRequest(alternatives=({"resource_class": name, "traits": traits},), request_id="r")
    (group,) = device_groups([request])
    assert group.resources == {resource_class: 1}
    assert {name for (name,) in group.required} == {"CUSTOM_BLUE", "HW_CPU_X86_AVX", "CUSTOM_MY_TRAIT"}


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (PciRequest(alternatives=({}, {}), request_id="r", name="gpu"), "alternatives, as in 'gpu'"),
        (PciRequest(alternatives=({"resource_class": "x"},), request_id="r", count=1_001), "1001 devices"),
        (PciRequest(alternatives=({"resource_class": "x"},), request_id="a b"), "'a b' cannot begin"),
        (PciRequest(alternatives=({"resource_class": "x"},)), "'' cannot begin"),
        (PciRequest(alternatives=({"resource_class": "x" * 300},), request_id="r"), "is not a resource class"),
    ],
)
def test_request_that_placement_cannot_express_is_refused(request_, problem):
    with pytest.raises(BadRequest, match=problem):
        list(device_groups([request_]))


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        (["{"], "is invalid: Input data was truncated"),
        (["[]"], "Expected object, got array"),
        (['{"name": "a"}'], "vendor_id and product_id, or resource_class, must be given"),
        (['{"vendor_id": "1111", "product_id": "0000"}'], "missing required field name"),
        ([GPU.replace("10de", "xyz1")], "vendor_id must be four hexadecimal digits"),
        ([GPU.replace("required", "near")], "numa_policy must be required, legacy, preferred or socket"),
        ([GPU.replace('"gpu"', '""')], "length >= 1"),
        ([GPU.replace("}", ', "color": "x"}')], "unknown field color"),
        ([GPU.replace("}", ', "live_migratable": "maybe"}')], "live_migratable must be true or false"),
        ([GPU, GPU.replace("type-PCI", "type-VF")], "another device_type than"),
        ([GPU, GPU.replace("required", "socket")], "another numa_policy than"),
        (['{"name": "a", "resource_class": "X"}'], "needs vendor_id and product_id unless"),
    ],
)
def test_invalid_alias_setting_is_refused_with_file_key_and_value(entries, problem):
    lines = ", ".join(f"'{entry}'" for entry in entries)
    with pytest.raises(BadSettings) as caught:
        read_settings(f"[pci]\nalias = [{lines}]\n")
    text = str(caught.value)
    assert text.startswith("roost.toml: pci.alias: entry ")
    assert problem in text
    assert repr(entries[-1])[1:-1] in text


def test_alias_with_only_a_resource_class_is_valid_in_placement():
    alias = '{"name": "a", "resource_class": "X"}'
    text = f"[filter_scheduler]\npci_in_placement = true\n[pci]\nalias = ['{alias}']\n"
    assert read_settings(text).pci.alias == (alias,)
