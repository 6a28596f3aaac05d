"""Validators of extra specs: the built-in namespaces, and the fields of a validator."""

from types import SimpleNamespace

import pytest

from roost.compat.api.validation.extra_specs import validators
from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator
from roost.compat.api.validation.extra_specs.validators import validate
from roost.compat.exception import ValidationError
from roost.errors import BadRequest


def is_accepted(name, value):
    try:
        validate(name, value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("accel:device_profile", ["x", ""], []),
        ("aggregate_instance_extra_specs:ssd", ["true"], []),
        ("capabilities:free_ram_mb", [">= 1024"], []),
        ("capabilities:cpu_info:features", ["<in> aes"], []),
        ("hw:cpu_policy", ["dedicated", "mixed"], ["Dedicated", ""]),
        ("hw:numa_nodes", ["1", "8"], ["0", "two"]),
        ("hw:numa_cpus.0", ["0-3,^1", "2"], ["1,", "r"]),
        ("hw:numa_mem.1", ["512"], ["0"]),
        ("hw:mem_page_size", ["large", "2048", "2MB", "1GiB"], ["huge"]),
        ("hw:boot_menu", ["true", "No", "1"], ["maybe", ""]),
        ("hw_rng:rate_bytes", ["0"], ["-1"]),
        ("hw_video:ram_max_mb", ["64"], ["64M"]),
        ("hide_hypervisor_id", ["yes"], ["2"]),
        ("group_policy", ["none", "isolate"], ["sometimes"]),
        ("os:secure_boot", ["required"], ["true"]),
        ("pci_passthrough:alias", ["nic:1", "nic:1, gpu:2"], ["nic", "nic:x"]),
        ("quota:cpu_quota", ["-1", "5000"], ["1.5"]),
        ("quota:memory_shares_level", ["custom"], ["most"]),
        ("quota:vif_inbound_peak", ["7"], ["-7"]),
        ("resources:VCPU", ["0", "4"], ["-1", "four"]),
        ("resources_A-1:CUSTOM_GOLD", ["1"], [""]),
        ("trait:HW_CPU_X86_AVX", ["required", "forbidden"], ["wanted"]),
        ("trait1:CUSTOM_FAST", ["required"], ["1"]),
        ("vmware:storage_policy", ["gold"], []),
    ],
)
def test_extra_spec_of_a_known_namespace_has_a_type(name, good, bad):
    assert [value for value in good if not is_accepted(name, value)] == []
    assert [value for value in bad if is_accepted(name, value)] == []


@pytest.mark.parametrize("name", ["hw:cpu_polcy", "hw:numa_cpus.x", "os:x", "resources:NOSUCH", "trait:NOSUCH"])
def test_unknown_extra_spec_of_a_known_namespace_is_refused(name):
    with pytest.raises(BadRequest, match=f"^there is no extra spec {name}$"):
        validate(name, "1")


@pytest.mark.parametrize("name", ["unscoped", "acme:colour", "a:b:c"])
def test_extra_specs_of_unknown_namespaces_are_accepted(name):
    validate(name, "anything")


def test_validation_error_names_the_extra_spec_and_the_value():
    with pytest.raises(ValidationError, match=r"^the extra spec hw:numa_nodes='0' is less than 1$"):
        validate("hw:numa_nodes", "0")


@pytest.mark.shows("S059")
def test_validator_checks_type_bounds_pattern_and_choices():
    number = ExtraSpecValidator(name="acme:n", description="A number.", value={"type": int, "min": 1, "max": 3})
    text = ExtraSpecValidator(name="acme:t", description="A text.", value={"type": str, "pattern": "[a-c]+"})
    choice = ExtraSpecValidator(name="acme:c", description="A choice.", value={"type": str, "enum": ["x", "y"]})
    switch = ExtraSpecValidator(name="acme:b", description="A switch.", value={"type": bool}, deprecated=True)
    family = ExtraSpecValidator(
        name="acme:{number}.{rest}",
        description="Several.",
        value={"type": str},
        parameters=[{"name": "number", "pattern": r"\d+"}, {"name": "rest", "pattern": "[a-z]"}],
    )
    for each, good, bad in (
        (number, ["1", "3"], ["0", "4", "x", "1.0"]),
        (text, ["abc"], ["abcd", ""]),
        (choice, ["x"], ["X", "z"]),
        (switch, ["on", "F"], ["2"]),
    ):
        for value in good:
            each.validate(each.name, value)
        for value in bad:
            with pytest.raises(ValidationError):
                each.validate(each.name, value)
    assert [family.matches(name) for name in ("acme:1.a", "acme:x.a", "acme:1xa", "acme:1.ab")] == [
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(ValueError, match="its type must be int, str or bool"):
        ExtraSpecValidator(name="acme:f", description="A fraction.", value={"type": float})


def test_installed_validators_are_loaded_and_nova_namespaces_are_built_in(monkeypatch):
    fields = {"description": "d", "deprecated": False, "parameters": []}
    foreign = SimpleNamespace(name="acme:foo", value={"type": str, "enum": ["bar"]}, **fields)
    entries = [
        Entry("nova.api.validation.extra_specs.hw", None),
        Entry("acme.validators", SimpleNamespace(register=lambda: [foreign])),
    ]
    monkeypatch.setattr(validators, "entry_points", lambda group: entries if group == validators.NAMESPACE else [])
    validators._load_all.cache_clear()
    try:
        assert is_accepted("acme:foo", "bar")
        assert not is_accepted("acme:foo", "qux")
        assert is_accepted("hw:numa_nodes", "1")
    finally:
        validators._load_all.cache_clear()


class Entry:
    """An entry point; one without a module cannot be loaded."""

    def __init__(self, value, module):
        self.name = self.value = value
        self._module = module

    def load(self):
        """Return the module."""
        assert self._module is not None
        return self._module
