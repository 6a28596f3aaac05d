import pytest

from tests.support.fleets.worlds import uuid_named
from tests.support.servers.placement_records import (
    OWNER,
    generation,
    held,
    holding,
    offer,
    provider,
    put,
    put_many,
    used,
)

NOBODY = "00000000-0000-0000-0000-000000000000"


def list_body(name, **resources):
    return {"allocations": [{"resource_provider": {"uuid": uuid_named(name)}, "resources": resources}]}


def dict_body(name, **resources):
    return {"allocations": {uuid_named(name): {"resources": resources}}, **OWNER}


@pytest.fixture
def fleet(api):
    """Two hosts of 8 VCPU; one of them offers memory in steps of 64."""
    provider(api, "one", VCPU={"total": 8, "max_unit": 6}, MEMORY_MB={"total": 1024, "step_size": 64, "min_unit": 64})
    provider(api, "two", VCPU=8)
    return api


def test_put_replaces_all_allocations_of_a_consumer(fleet):
    assert put(fleet, "server", {"one": {"VCPU": 2, "MEMORY_MB": 64}}).status == 204
    assert held(fleet, "server") == {
        "allocations": {uuid_named("one"): {"resources": {"VCPU": 2, "MEMORY_MB": 64}, "generation": 2}},
        "consumer_generation": 1,
        "consumer_type": "INSTANCE",
        **OWNER,
    }
    assert put(fleet, "server", {"two": {"VCPU": 3}}, 1, consumer_type="MIGRATION").status == 204
    assert held(fleet, "server") == {
        "allocations": {uuid_named("two"): {"resources": {"VCPU": 3}, "generation": 2}},
        "consumer_generation": 2,
        "consumer_type": "MIGRATION",
        **OWNER,
    }
    assert (used(fleet, "one")["VCPU"], used(fleet, "two")["VCPU"]) == (0, 3)


OF_12 = {"allocations", "project_id", "user_id"}
OF_28 = OF_12 | {"consumer_generation"}


@pytest.mark.parametrize(
    ("version", "body", "owner", "keys"),
    [
        ("1.0", list_body("one", VCPU=1), NOBODY, {"allocations"}),
        ("1.7", list_body("one", VCPU=1), NOBODY, {"allocations"}),
        ("1.8", list_body("one", VCPU=1) | OWNER, "project", {"allocations"}),
        ("1.12", dict_body("one", VCPU=1), "project", OF_12),
        ("1.28", dict_body("one", VCPU=1) | {"consumer_generation": None}, "project", OF_28),
        (
            "1.34",
            dict_body("one", VCPU=1) | {"consumer_generation": None, "mappings": {"": [NOBODY]}},
            "project",
            OF_28,
        ),
        ("1.38", holding({"one": {"VCPU": 1}}), "project", OF_28 | {"consumer_type"}),
    ],
)
def test_request_and_response_fields_by_version(fleet, version, body, owner, keys):
    assert fleet.put(f"/allocations/{uuid_named('server')}", body, version=version).status == 204
    assert held(fleet, "server")["project_id"] == owner
    assert held(fleet, "server")["consumer_type"] == ("INSTANCE" if version == "1.38" else "unknown")
    assert set(held(fleet, "server", version=version)) == keys


def test_last_entry_of_a_repeated_provider_counts_in_old_bodies(fleet):
    body = {"allocations": [*list_body("one", VCPU=1)["allocations"], *list_body("one", MEMORY_MB=64)["allocations"]]}
    assert fleet.put(f"/allocations/{uuid_named('server')}", body, version="1.0").status == 204
    assert held(fleet, "server")["allocations"][uuid_named("one")]["resources"] == {"MEMORY_MB": 64}


def test_old_version_keeps_the_consumer_type_and_sets_the_owner(fleet):
    put(fleet, "server", {"one": {"VCPU": 1}})
    fleet.put(f"/allocations/{uuid_named('server')}", list_body("one", VCPU=2), version="1.0")
    shown = held(fleet, "server")
    assert (shown["consumer_type"], shown["project_id"], shown["consumer_generation"]) == ("INSTANCE", NOBODY, 2)


def test_consumer_generation_conflict_is_reported_first(fleet):
    response = put(fleet, "server", {"nobody": {"CUSTOM_NONE": 1}}, 3)
    assert (response.status, response.code) == (409, "placement.concurrent_update")
    assert response.text == "consumer generation conflict - expected null but got 3"
    put(fleet, "server", {"one": {"VCPU": 1}})
    assert put(fleet, "server", {"one": {"VCPU": 2}}).text.endswith("expected 1 but got None")
    assert put(fleet, "server", {"one": {"VCPU": 2}}, 7).text.endswith("expected 1 but got 7")
    assert put(fleet, "server", {"one": {"VCPU": 2}}, 1.0).status == 204


def problem(amounts):
    return "Unable to allocate inventory: " + amounts


ONE, TWO, NOT_THERE = uuid_named("one"), uuid_named("two"), uuid_named("not there")
BOUNDS = "Unable to create allocation for '{}' on resource provider '{}'. The requested amount would {}."


@pytest.mark.parametrize(
    ("amounts", "status", "text"),
    [
        ({"not there": {"VCPU": 1}}, 400, f"Allocation for resource provider '{NOT_THERE}' that does not exist."),
        (
            {"one": {"CUSTOM_NONE": 1}, "not there": {"VCPU": 1}},
            400,
            f"Allocation for resource provider '{NOT_THERE}' that does not exist.",
        ),
        (
            {"one": {"VCPU": 100, "CUSTOM_NONE": 1}},
            400,
            f"Unable to allocate inventory for consumer {uuid_named('server')}: No such resource class CUSTOM_NONE.",
        ),
        ({"two": {"VGPU": 1}}, 409, problem(f"Inventory for 'VGPU' on resource provider '{TWO}' invalid.")),
        (
            {"one": {"VCPU": 100}, "two": {"VGPU": 1}},
            409,
            problem(BOUNDS.format("VCPU", ONE, "violate inventory constraints")),
        ),
        (
            {"one": {"MEMORY_MB": 65}, "two": {"DISK_GB": 1}},
            409,
            problem(f"Inventory for 'MEMORY_MB, DISK_GB' on resource provider '{TWO}' invalid."),
        ),
        ({"one": {"VCPU": 7}}, 409, problem(BOUNDS.format("VCPU", ONE, "violate inventory constraints"))),
        ({"one": {"MEMORY_MB": 65}}, 409, problem(BOUNDS.format("MEMORY_MB", ONE, "violate inventory constraints"))),
        ({"one": {"MEMORY_MB": 1088}}, 409, problem(BOUNDS.format("MEMORY_MB", ONE, "exceed the capacity"))),
        ({"two": {"VCPU": 2**70}}, 409, problem(BOUNDS.format("VCPU", TWO, "violate inventory constraints"))),
    ],
)
def test_claims_that_do_not_fit_are_refused_with_placement_errors(fleet, amounts, status, text):
    response = put(fleet, "server", amounts)
    assert (response.status, response.text, response.code) == (status, text, "placement.undefined_code")
    assert held(fleet, "server") == {"allocations": {}}
    assert put(fleet, "server", {"two": {"VCPU": 1}}).status == 204  # Nothing of the refused claim is left.


def test_consumer_may_use_the_capacity_it_already_holds(fleet):
    put(fleet, "a", {"two": {"VCPU": 8}})
    assert put(fleet, "a", {"two": {"VCPU": 7}}, 1).status == 204
    put(fleet, "b", {"one": {"VCPU": 6}})
    assert put_many(fleet, a=({"one": {"VCPU": 6}}, 2), b=({"two": {"VCPU": 8}}, 1)).status == 204
    assert (used(fleet, "one")["VCPU"], used(fleet, "two")["VCPU"]) == (6, 8)


def test_several_consumers_are_claimed_all_or_none(fleet):
    response = put_many(fleet, a=({"two": {"VCPU": 5}}, None), b=({"two": {"VCPU": 4}}, None))
    assert (response.status, response.text) == (409, problem(BOUNDS.format("VCPU", TWO, "exceed the capacity")))
    assert used(fleet, "two") == {"VCPU": 0}
    unknown = put_many(fleet, a=({"two": {"VCPU": 5}}, None), b=({"two": {"CUSTOM_NONE": 4}}, None))
    assert unknown.text == "Unable to allocate inventory No such resource class CUSTOM_NONE."


def test_usage_above_the_capacity_may_shrink_but_not_grow(fleet):
    put(fleet, "a", {"two": {"VCPU": 4}})
    put(fleet, "b", {"two": {"VCPU": 4}})
    offer(fleet, "two", VCPU=5)
    assert put(fleet, "a", {"two": {"VCPU": 4}}, 1).status == 204
    assert put(fleet, "a", {"two": {"VCPU": 5}}, 2).status == 409
    assert put(fleet, "c", {"two": {"VCPU": 1}}).status == 409
    assert put(fleet, "a", {"two": {"VCPU": 3}}, 2).status == 204
    assert put_many(fleet, a=({"two": {"VCPU": 1}}, 3), b=({"two": {"VCPU": 6}}, 1)).status == 204
    assert used(fleet, "two") == {"VCPU": 7}


def test_consumer_without_allocations_is_deleted(fleet):
    put(fleet, "server", {"one": {"VCPU": 1}, "two": {"VCPU": 1}})
    assert put(fleet, "server", {}, 1).status == 204
    assert held(fleet, "server") == {"allocations": {}}
    assert (generation(fleet, "one"), generation(fleet, "two")) == (3, 3)
    assert put(fleet, "server", {"one": {"VCPU": 1}}).status == 204


def test_empty_allocations_of_a_new_consumer_create_nothing(fleet):
    assert put(fleet, "server", {}).status == 204
    assert put_many(fleet, server=({}, None), other=({"one": {"VCPU": 1}}, None)).status == 204
    assert put(fleet, "server", {"one": {"VCPU": 1}}).status == 204
    assert (
        fleet.put(f"/allocations/{uuid_named('x')}", dict_body("one") | {"allocations": {}}, version="1.12").status
        == 400
    )


def test_generation_of_each_provider_rises_once(fleet):
    put_many(fleet, a=({"one": {"VCPU": 1, "MEMORY_MB": 64}}, None), b=({"one": {"VCPU": 1}, "two": {"VCPU": 1}}, None))
    assert (generation(fleet, "one"), generation(fleet, "two")) == (2, 2)
    put(fleet, "b", {"two": {"VCPU": 2}}, 1)  # A provider that a consumer merely left keeps its generation.
    assert (generation(fleet, "one"), generation(fleet, "two")) == (2, 3)
    put_many(fleet, a=({}, 1), b=({"one": {"VCPU": 1}}, 2))
    assert (generation(fleet, "one"), generation(fleet, "two")) == (3, 3)
    assert fleet.delete(f"/allocations/{uuid_named('b')}").status == 204
    assert (generation(fleet, "one"), generation(fleet, "two")) == (3, 3)


def test_deleted_consumer_releases_its_allocations(fleet):
    put(fleet, "server", {"two": {"VCPU": 8}})
    assert fleet.delete(f"/allocations/{uuid_named('server')}").status == 204
    assert used(fleet, "two") == {"VCPU": 0}
    again = fleet.delete(f"/allocations/{uuid_named('server')}")
    assert (again.status, again.text) == (404, f"No allocations for consumer '{uuid_named('server')}'")


def test_provider_lists_its_allocations(fleet):
    put_many(fleet, a=({"one": {"VCPU": 1}, "two": {"VCPU": 1}}, None), b=({"two": {"VCPU": 2}}, None))
    url = f"/resource_providers/{TWO}/allocations"
    assert fleet.get(url).json == {
        "allocations": {
            uuid_named("a"): {"resources": {"VCPU": 1}, "consumer_generation": 1},
            uuid_named("b"): {"resources": {"VCPU": 2}, "consumer_generation": 1},
        },
        "resource_provider_generation": 2,
    }
    assert fleet.get(url, version="1.27").json["allocations"][uuid_named("b")] == {"resources": {"VCPU": 2}}
    missing = fleet.get(f"/resource_providers/{NOT_THERE}/allocations")
    message = f"Resource provider '{NOT_THERE}' not found: No resource provider with uuid {NOT_THERE} found"
    assert (missing.status, missing.text) == (404, message)


def test_spellings_of_a_consumer_uuid_are_one_consumer(fleet):
    body = holding({"one": {"VCPU": 1}})
    assert fleet.put(f"/allocations/{uuid_named('a').replace('-', '').upper()}", body).status == 204
    assert held(fleet, "a")["consumer_generation"] == 1
    assert fleet.get(f"/allocations/{uuid_named('a').upper()}").json == {"allocations": {}}
    for wrong in (fleet.put("/allocations/nobody", b"{"), fleet.post("/allocations", {"-" * 36: body})):
        assert (wrong.status, wrong.text.partition(":")[0]) == (400, "Malformed consumer_uuid")
    twice = fleet.post("/allocations", {uuid_named("b"): body, uuid_named("b").upper(): body})
    assert (twice.status, twice.text) == (400, f"The consumer {uuid_named('b')} is named twice.")


def test_post_of_many_consumers_requires_version_1_13(fleet):
    body = {uuid_named("a"): dict_body("one", VCPU=1), uuid_named("b"): dict_body("two", VCPU=1)}
    assert fleet.post("/allocations", body, version="1.12").status == 404
    assert fleet.post("/allocations", body, version="1.13").status == 204
    assert fleet.post("/allocations", {}, version="1.13").status == 400


def test_allocations_are_persistent(api_factory):
    with api_factory() as api:
        provider(api, "one", VCPU=8)
        put_many(api, a=({"one": {"VCPU": 2}}, None), b=({"one": {"VCPU": 1}}, None), c=({"one": {"VCPU": 1}}, None))
        put_many(api, a=({"one": {"VCPU": 3}}, 1), b=({}, 1))
        api.delete(f"/allocations/{uuid_named('c')}")
        shown = held(api, "a")
    with api_factory() as api:
        assert held(api, "a") == shown
        assert (shown["consumer_generation"], shown["consumer_type"]) == (2, "INSTANCE")
        assert (held(api, "b"), held(api, "c")) == ({"allocations": {}}, {"allocations": {}})
        assert (used(api, "one"), generation(api, "one")) == ({"VCPU": 3}, 3)
        assert put(api, "a", {"one": {"VCPU": 8}}, 2, consumer_type="MIGRATION").status == 204
