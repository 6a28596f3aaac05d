import pytest

from tests.support.fleets.worlds import uuid_named
from tests.support.servers.placement_records import hold, provider

UNKNOWN = "99999999-9999-4999-8999-999999999999"
ONE = uuid_named("one")
DEFAULTS = {"reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1, "allocation_ratio": 1.0}


def path(uuid, resource_class=""):
    return f"/resource_providers/{uuid}/inventories{resource_class and '/'}{resource_class}"


def read_inventories(api, uuid=ONE):
    body = api.get(path(uuid)).json
    return body["resource_provider_generation"], body["inventories"]


def replace(api, generation, version="1.39", **inventories):
    body = {"resource_provider_generation": generation, "inventories": inventories}
    return api.put(path(ONE), body, version=version)


def change(api, resource_class, generation, version="1.39", **record):
    body = {"resource_provider_generation": generation, **record}
    return api.put(path(ONE, resource_class), body, version=version)


@pytest.fixture
def stocked_api(api):
    """The API with a provider of VCPU and DISK_GB, at generation 1."""
    provider(api)
    assert replace(api, 0, VCPU={"total": 8}, DISK_GB={"total": 100}).status == 200
    return api


@pytest.fixture
def busy_api(stocked_api):
    """The same API with both classes in use, at generation 2."""
    hold(stocked_api, "someone", **{ONE: {"VCPU": 4, "DISK_GB": 10}})
    return stocked_api


def test_missing_fields_have_defaults(api):
    provider(api)
    added = api.post(path(ONE), {"resource_class": "VCPU", "total": 8, "resource_provider_generation": 77})
    assert added.status == 201
    assert added.headers["location"] == f"http://localhost{path(ONE, 'VCPU')}"
    assert added.json == {"total": 8, **DEFAULTS, "resource_provider_generation": 1}
    assert api.get(path(ONE, "VCPU")).json == added.json
    assert read_inventories(api) == (1, {"VCPU": {"total": 8, **DEFAULTS}})


def test_all_given_fields_are_stored(stocked_api):
    record = {"total": 9, "reserved": 2, "min_unit": 3, "max_unit": 4, "step_size": 5, "allocation_ratio": 0.3}
    changed = change(stocked_api, "VCPU", 1, **record)
    assert (changed.status, changed.json) == (200, {**record, "resource_provider_generation": 2})
    assert read_inventories(stocked_api) == (2, {"VCPU": record, "DISK_GB": {"total": 100, **DEFAULTS}})


def test_whole_numbers_may_be_floats(stocked_api):
    assert change(stocked_api, "VCPU", 1, total=7.0, reserved=1.0, allocation_ratio=2).status == 200
    body = stocked_api.get(path(ONE, "VCPU")).body
    assert b'"total":7,"reserved":1,' in body
    assert b'"allocation_ratio":2.0' in body


def test_every_write_raises_the_generation(stocked_api):
    for generation in (1, 2):
        assert (
            replace(stocked_api, generation, VCPU={"total": 8}).json["resource_provider_generation"] == generation + 1
        )
    assert stocked_api.delete(path(ONE, "VCPU")).status == 204
    assert stocked_api.delete(path(ONE)).status == 204
    assert read_inventories(stocked_api) == (5, {})


def test_empty_inventories_have_no_last_modified(stocked_api):
    assert "last-modified" in stocked_api.get(path(ONE)).headers
    for response in (replace(stocked_api, 1), stocked_api.get(path(ONE))):
        assert "last-modified" not in response.headers
        assert response.headers["cache-control"] == "no-cache"
    assert "cache-control" not in stocked_api.get(path(ONE), version="1.14").headers


def test_generation_conflict_is_reported_first(stocked_api):
    wrong = {"total": 1, "reserved": 2}
    for response in (replace(stocked_api, 0, NONE=wrong), change(stocked_api, "NONE", 2, **wrong)):
        assert (response.status, response.code) == (409, "placement.concurrent_update")
        assert response.text == "resource provider generation conflict"


@pytest.mark.parametrize(
    ("record", "version", "text"),
    [
        ({"reserved": 8}, "1.25", "The reserved value is greater than or equal to total."),
        ({"reserved": 9}, "1.25", "The reserved value is greater than or equal to total."),
        ({"allocation_ratio": 0.1}, "1.25", "The reserved value is greater than or equal to total."),
        ({"reserved": 9}, "1.26", "The reserved value is greater than total."),
        ({"reserved": 9, "allocation_ratio": -1}, "1.26", "The reserved value is greater than total."),
        ({"reserved": 8, "allocation_ratio": -1}, "1.26", "The allocation ratio is less than 0."),
        ({"allocation_ratio": float("nan")}, "1.26", "The allocation ratio is not a finite number."),
        ({"allocation_ratio": float("-inf")}, "1.0", "The allocation ratio is not a finite number."),
    ],
)
def test_inventory_without_capacity_is_refused(stocked_api, record, version, text):
    record = {"total": 8, **record}
    for name, response in {
        "VCPU": change(stocked_api, "VCPU", 1, version, **record),
        "NONE": replace(stocked_api, 1, version, VCPU={"total": 8}, NONE=record),
        "VGPU": stocked_api.post(path(ONE), {"resource_class": "VGPU", **record}, version=version),
    }.items():
        assert response.status == 400
        verb = "create" if name == "VGPU" else "update"
        assert response.text == (
            f"Unable to {verb} inventory for resource provider {ONE}: "
            f"Invalid inventory for '{name}' on resource provider '{ONE}'. {text}"
        )
    assert read_inventories(stocked_api)[0] == 1


def test_all_may_be_reserved_since_version_1_26(stocked_api):
    assert change(stocked_api, "VCPU", 1, "1.26", total=8, reserved=8).status == 200
    assert change(stocked_api, "VCPU", 2, "1.26", total=8, allocation_ratio=0).status == 200
    assert change(stocked_api, "VCPU", 3, "1.26", total=2147483647, allocation_ratio=3.40282e38).status == 200
    assert stocked_api.get("/resource_providers?resources=VCPU:2147483647").json["resource_providers"] != []


def test_unknown_class_errors_by_route(stocked_api):
    unknown = f"Unknown resource class in inventory for resource provider {ONE}: No such resource class NONE."
    assert replace(stocked_api, 1, VCPU={"total": 1}, NONE={"total": 1}).text == unknown
    added = stocked_api.post(path(ONE), {"resource_class": "NONE", "total": 1})
    assert (added.status, added.text) == (
        400,
        f"Unable to create inventory for resource provider {ONE}: No such resource class NONE.",
    )
    changed = change(stocked_api, "NONE", 1, total=1)
    assert (changed.status, changed.text) == (404, "No such resource class NONE.")
    removed = stocked_api.delete(path(ONE, "NONE"))
    assert (removed.status, removed.text) == (
        404,
        "No inventory of class NONE found for delete: No such resource class NONE.",
    )


@pytest.mark.parametrize("record", [5, None, {}, {"total": "x"}, {"total": 1, "more": 1}, {"total": 1}])
def test_invalid_class_name_is_unknown_whatever_its_record(stocked_api, record):
    response = replace(stocked_api, 1, **{"no class": record})
    assert response.status == 400
    assert response.text.endswith("No such resource class no class.")


def test_missing_inventory_errors_by_route(stocked_api):
    assert stocked_api.get(path(ONE, "VGPU")).text == f"No inventory of class VGPU for {ONE}"
    assert stocked_api.get(path(ONE, "no class")).text == f"No inventory of class no class for {ONE}"
    changed = change(stocked_api, "VGPU", 1, total=1)
    assert (changed.status, changed.text) == (
        400,
        f"No inventory record with resource class for resource provider {ONE}: No inventory of class VGPU found.",
    )
    removed = stocked_api.delete(path(ONE, "VGPU"))
    problem = "No inventory of class VGPU found for delete"
    assert (removed.status, removed.text) == (404, f"{problem}: {problem}")


def test_adding_an_existing_inventory_is_a_conflict(stocked_api):
    again = stocked_api.post(path(ONE), {"resource_class": "VCPU", "total": 1})
    assert (again.status, again.code) == (409, "placement.concurrent_update")
    assert again.text == "Update conflict: an inventory of class VCPU exists already"


def test_inventory_in_use_cannot_be_deleted(busy_api):
    used = f"Inventory for '{{}}' on resource provider '{ONE}' in use."
    both = used.format("VCPU, DISK_GB")
    for response, text, code in (
        (busy_api.delete(path(ONE)), both, "placement.inventory.inuse"),
        (replace(busy_api, 2), f"update conflict: {both}", "placement.inventory.inuse"),
        (
            replace(busy_api, 2, VCPU={"total": 1}),
            f"update conflict: {used.format('DISK_GB')}",
            "placement.inventory.inuse",
        ),
        (
            busy_api.delete(path(ONE, "VCPU")),
            f"Unable to delete inventory of class VCPU: {used.format('VCPU')}",
            "placement.concurrent_update",
        ),
    ):
        assert (response.status, response.text, response.code) == (409, text, code)
    assert read_inventories(busy_api)[0] == 2


def test_capacity_may_shrink_below_its_usage(busy_api):
    assert replace(busy_api, 2, VCPU={"total": 1}, DISK_GB={"total": 100}).status == 200
    assert busy_api.get("/resource_providers?resources=VCPU:1").json["resource_providers"] == []


def test_deleting_all_inventories_requires_version_1_5(stocked_api):
    for uuid in (ONE, UNKNOWN):
        old = stocked_api.delete(path(uuid), version="1.4")
        assert (old.status, "allow" in old.headers) == (405, False)
        assert old.json["errors"][0]["detail"] == "The method DELETE is not allowed for this resource. \n\n "
    assert stocked_api.delete(path(ONE), version="1.5").status == 204


def test_missing_provider_is_reported_first(api):
    text = f"No resource provider with uuid {UNKNOWN} found"
    for method, rest in (("POST", ""), ("PUT", ""), ("DELETE", ""), ("PUT", "VCPU"), ("DELETE", "NONE")):
        response = api.ask(method, path(UNKNOWN, rest), b"no json")
        assert (response.status, response.text) == (404, text)
    for rest in ("", "VCPU"):
        assert api.get(path(UNKNOWN, rest)).text == f"{text} : {text}"


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"total": 0}, "0 is less than the minimum of 1"),
        ({"total": 2147483648}, "2147483648 is greater than the maximum of 2147483647"),
        ({"total": 1.5}, "1.5 is not of type 'integer'"),
        ({"total": 1, "reserved": -1}, "-1 is less than the minimum of 0"),
        ({"total": 1, "allocation_ratio": 3.5e38}, "3.5e+38 is greater than the maximum of 3.40282e+38"),
        ({"total": 1, "more": 1}, "Additional properties are not allowed ('more' was unexpected)"),
        ({}, "'total' is a required property"),
    ],
)
def test_fields_have_limits(stocked_api, record, problem):
    for response in (
        change(stocked_api, "VCPU", 1, **record),
        replace(stocked_api, 1, VCPU=record),
        stocked_api.post(path(ONE), {"resource_class": "VGPU", **record}),
    ):
        assert response.status == 400
        assert response.text.startswith(f"JSON does not validate: {problem}")


def test_inventories_are_persistent(api_factory):
    record = {"total": 9, "reserved": 2, "min_unit": 3, "max_unit": 4, "step_size": 5, "allocation_ratio": 1e-3}
    with api_factory() as api:
        provider(api)
        assert replace(api, 0, "1.26", VCPU={"total": 8}, PCPU=record, VGPU={"total": 1}).status == 200
        assert api.delete(path(ONE, "VGPU")).status == 204
    with api_factory() as api:
        assert read_inventories(api) == (2, {"VCPU": {"total": 8, **DEFAULTS}, "PCPU": record})
