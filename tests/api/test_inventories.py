import pytest

from tests.support.fleets.worlds import uuid_named
from tests.support.servers.placement_records import hold, provider

UNKNOWN = "99999999-9999-4999-8999-999999999999"
ONE = uuid_named("one")
DEFAULTS = {"reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1, "allocation_ratio": 1.0}


def path(uuid, resource_class=""):
    return f"/resource_providers/{uuid}/inventories{resource_class and '/'}{resource_class}"


def shown(api, uuid=ONE):
    body = api.get(path(uuid)).json
    return body["resource_provider_generation"], body["inventories"]


def replace(api, generation, version="1.39", **inventories):
    body = {"resource_provider_generation": generation, "inventories": inventories}
    return api.put(path(ONE), body, version=version)


def change(api, resource_class, generation, version="1.39", **record):
    body = {"resource_provider_generation": generation, **record}
    return api.put(path(ONE, resource_class), body, version=version)


@pytest.fixture
def stocked(api):
    """A provider that offers VCPU and DISK_GB, at generation 1."""
    provider(api)
    assert replace(api, 0, VCPU={"total": 8}, DISK_GB={"total": 100}).status == 200
    return api


@pytest.fixture
def busy(stocked):
    """The same with both in use, at generation 2."""
    hold(stocked, "someone", **{ONE: {"VCPU": 4, "DISK_GB": 10}})
    return stocked


def test_what_is_left_out_has_its_default(api):
    provider(api)
    added = api.post(path(ONE), {"resource_class": "VCPU", "total": 8, "resource_provider_generation": 77})
    assert added.status == 201
    assert added.headers["location"] == f"http://localhost{path(ONE, 'VCPU')}"
    assert added.json == {"total": 8, **DEFAULTS, "resource_provider_generation": 1}
    assert api.get(path(ONE, "VCPU")).json == added.json
    assert shown(api) == (1, {"VCPU": {"total": 8, **DEFAULTS}})


def test_everything_that_is_given_is_kept(stocked):
    record = {"total": 9, "reserved": 2, "min_unit": 3, "max_unit": 4, "step_size": 5, "allocation_ratio": 0.3}
    changed = change(stocked, "VCPU", 1, **record)
    assert (changed.status, changed.json) == (200, {**record, "resource_provider_generation": 2})
    assert shown(stocked) == (2, {"VCPU": record, "DISK_GB": {"total": 100, **DEFAULTS}})


def test_a_whole_number_may_be_written_with_a_point(stocked):
    assert change(stocked, "VCPU", 1, total=7.0, reserved=1.0, allocation_ratio=2).status == 200
    body = stocked.get(path(ONE, "VCPU")).body
    assert b'"total":7,"reserved":1,' in body
    assert b'"allocation_ratio":2.0' in body


def test_every_write_counts_also_without_a_change(stocked):
    for generation in (1, 2):
        assert replace(stocked, generation, VCPU={"total": 8}).json["resource_provider_generation"] == generation + 1
    assert stocked.delete(path(ONE, "VCPU")).status == 204
    assert stocked.delete(path(ONE)).status == 204
    assert shown(stocked) == (5, {})


def test_nothing_has_no_date(stocked):
    assert "last-modified" in stocked.get(path(ONE)).headers
    for answer in (replace(stocked, 1), stocked.get(path(ONE))):
        assert "last-modified" not in answer.headers
        assert answer.headers["cache-control"] == "no-cache"
    assert "cache-control" not in stocked.get(path(ONE), version="1.14").headers


def test_who_saw_another_generation_is_refused_before_anything_else(stocked):
    wrong = {"total": 1, "reserved": 2}
    for answer in (replace(stocked, 0, NONE=wrong), change(stocked, "NONE", 2, **wrong)):
        assert (answer.status, answer.code) == (409, "placement.concurrent_update")
        assert answer.text == "resource provider generation conflict"


@pytest.mark.parametrize(
    ("record", "version", "text"),
    [
        ({"reserved": 8}, "1.25", "The reserved value is greater than or equal to total."),
        ({"reserved": 9}, "1.25", "The reserved value is greater than or equal to total."),
        ({"allocation_ratio": 0.1}, "1.25", "The reserved value is greater than or equal to total."),
        ({"reserved": 9}, "1.26", "The reserved value is greater than total."),
        ({"reserved": 9, "allocation_ratio": -1}, "1.26", "The reserved value is greater than total."),
        ({"reserved": 8, "allocation_ratio": -1}, "1.26", "The allocation ratio is less than 0."),
        ({"allocation_ratio": float("nan")}, "1.26", "The allocation ratio is no number."),
        ({"allocation_ratio": float("-inf")}, "1.0", "The allocation ratio is no number."),
    ],
)
def test_something_must_be_left(stocked, record, version, text):
    record = {"total": 8, **record}
    for name, answer in {
        "VCPU": change(stocked, "VCPU", 1, version, **record),
        "NONE": replace(stocked, 1, version, VCPU={"total": 8}, NONE=record),
        "VGPU": stocked.post(path(ONE), {"resource_class": "VGPU", **record}, version=version),
    }.items():
        assert answer.status == 400
        act = "create" if name == "VGPU" else "update"
        assert answer.text == (
            f"Unable to {act} inventory for resource provider {ONE}: "
            f"Invalid inventory for '{name}' on resource provider '{ONE}'. {text}"
        )
    assert shown(stocked)[0] == 1


def test_all_may_be_reserved_from_1_26_on(stocked):
    assert change(stocked, "VCPU", 1, "1.26", total=8, reserved=8).status == 200
    assert change(stocked, "VCPU", 2, "1.26", total=8, allocation_ratio=0).status == 200
    assert change(stocked, "VCPU", 3, "1.26", total=2147483647, allocation_ratio=3.40282e38).status == 200
    assert stocked.get("/resource_providers?resources=VCPU:2147483647").json["resource_providers"] != []


def test_unknown_classes_are_told_as_each_route_tells_them(stocked):
    unknown = f"Unknown resource class in inventory for resource provider {ONE}: No such resource class NONE."
    assert replace(stocked, 1, VCPU={"total": 1}, NONE={"total": 1}).text == unknown
    added = stocked.post(path(ONE), {"resource_class": "NONE", "total": 1})
    assert (added.status, added.text) == (
        400,
        f"Unable to create inventory for resource provider {ONE}: No such resource class NONE.",
    )
    changed = change(stocked, "NONE", 1, total=1)
    assert (changed.status, changed.text) == (404, "No such resource class NONE.")
    removed = stocked.delete(path(ONE, "NONE"))
    assert (removed.status, removed.text) == (
        404,
        "No inventory of class NONE found for delete: No such resource class NONE.",
    )


@pytest.mark.parametrize("record", [5, None, {}, {"total": "x"}, {"total": 1, "more": 1}, {"total": 1}])
def test_a_name_that_no_class_can_have_is_unknown_whatever_it_holds(stocked, record):
    answer = replace(stocked, 1, **{"no class": record})
    assert answer.status == 400
    assert answer.text.endswith("No such resource class no class.")


def test_what_is_not_offered_is_told_as_each_route_tells_it(stocked):
    assert stocked.get(path(ONE, "VGPU")).text == f"No inventory of class VGPU for {ONE}"
    assert stocked.get(path(ONE, "no class")).text == f"No inventory of class no class for {ONE}"
    changed = change(stocked, "VGPU", 1, total=1)
    assert (changed.status, changed.text) == (
        400,
        f"No inventory record with resource class for resource provider {ONE}: No inventory of class VGPU found.",
    )
    removed = stocked.delete(path(ONE, "VGPU"))
    problem = "No inventory of class VGPU found for delete"
    assert (removed.status, removed.text) == (404, f"{problem}: {problem}")


def test_what_is_offered_is_not_added(stocked):
    again = stocked.post(path(ONE), {"resource_class": "VCPU", "total": 1})
    assert (again.status, again.code) == (409, "placement.concurrent_update")
    assert again.text == "Update conflict: an inventory of class VCPU exists already"


def test_what_is_in_use_does_not_go(busy):
    used = f"Inventory for '{{}}' on resource provider '{ONE}' in use."
    both = used.format("VCPU, DISK_GB")
    for answer, text, code in (
        (busy.delete(path(ONE)), both, "placement.inventory.inuse"),
        (replace(busy, 2), f"update conflict: {both}", "placement.inventory.inuse"),
        (
            replace(busy, 2, VCPU={"total": 1}),
            f"update conflict: {used.format('DISK_GB')}",
            "placement.inventory.inuse",
        ),
        (
            busy.delete(path(ONE, "VCPU")),
            f"Unable to delete inventory of class VCPU: {used.format('VCPU')}",
            "placement.concurrent_update",
        ),
    ):
        assert (answer.status, answer.text, answer.code) == (409, text, code)
    assert shown(busy)[0] == 2


def test_capacity_may_shrink_below_its_use(busy):
    assert replace(busy, 2, VCPU={"total": 1}, DISK_GB={"total": 100}).status == 200
    assert busy.get("/resource_providers?resources=VCPU:1").json["resource_providers"] == []


def test_before_1_5_all_could_not_be_removed_at_once(stocked):
    for uuid in (ONE, UNKNOWN):
        old = stocked.delete(path(uuid), version="1.4")
        assert (old.status, "allow" in old.headers) == (405, False)
        assert old.json["errors"][0]["detail"] == "The method DELETE is not allowed for this resource. \n\n "
    assert stocked.delete(path(ONE), version="1.5").status == 204


def test_a_provider_that_is_not_there_is_told_first(api):
    text = f"No resource provider with uuid {UNKNOWN} found"
    for method, rest in (("POST", ""), ("PUT", ""), ("DELETE", ""), ("PUT", "VCPU"), ("DELETE", "NONE")):
        answer = api.ask(method, path(UNKNOWN, rest), b"no json")
        assert (answer.status, answer.text) == (404, text)
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
def test_records_keep_their_bounds(stocked, record, problem):
    for answer in (
        change(stocked, "VCPU", 1, **record),
        replace(stocked, 1, VCPU=record),
        stocked.post(path(ONE), {"resource_class": "VGPU", **record}),
    ):
        assert answer.status == 400
        assert answer.text.startswith(f"JSON does not validate: {problem}")


def test_inventories_last(lasting):
    record = {"total": 9, "reserved": 2, "min_unit": 3, "max_unit": 4, "step_size": 5, "allocation_ratio": 1e-3}
    with lasting() as api:
        provider(api)
        assert replace(api, 0, "1.26", VCPU={"total": 8}, PCPU=record, VGPU={"total": 1}).status == 200
        assert api.delete(path(ONE, "VGPU")).status == 204
    with lasting() as api:
        assert shown(api) == (2, {"VCPU": {"total": 8, **DEFAULTS}, "PCPU": record})
