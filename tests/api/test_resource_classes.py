import pytest

from roost.model.writes import Item, PutSymbol
from roost.placement.current import FIRST_NUMBERS, REUSE_AFTER_S
from roost.store.memory_store import MemoryStore
from tests.support.fleets.worlds import FixedClock
from tests.support.servers.in_process_api import placement_api
from tests.support.servers.placement_records import provider


def names(api, **options):
    return [each["name"] for each in api.get("/resource_classes", **options).json["resource_classes"]]


def test_standard_classes_exist_from_the_start(api):
    assert names(api)[:3] == ["VCPU", "MEMORY_MB", "DISK_GB"]
    shown = api.get("/resource_classes/VCPU")
    assert shown.json == {"name": "VCPU", "links": [{"rel": "self", "href": "/resource_classes/VCPU"}]}
    assert shown.headers["cache-control"] == "no-cache"
    assert "last-modified" not in api.get("/resource_classes", version="1.14").headers


def test_links_begin_with_the_mount_point(api):
    shown = api.get("/resource_classes/VCPU", prefix="/placement")
    assert shown.json["links"][0]["href"] == "/placement/resource_classes/VCPU"


def test_resource_classes_require_version_1_2(api):
    for method, path in (("GET", ""), ("POST", ""), ("GET", "/VCPU"), ("PUT", "/VCPU"), ("DELETE", "/VCPU")):
        assert api.ask(method, f"/resource_classes{path}", version="1.1").status == 404
    assert api.delete("/resource_classes", version="1.1").headers["allow"] == "GET, POST"


def test_custom_class_is_created_once_and_deleted(api):
    created = api.post("/resource_classes", {"name": "CUSTOM_A"})
    assert (created.status, created.body) == (201, b"")
    assert created.headers["location"] == "http://localhost/resource_classes/CUSTOM_A"
    again = api.post("/resource_classes", {"name": "CUSTOM_A"})
    assert (again.status, again.text) == (409, "Conflicting resource class already exists: CUSTOM_A")
    assert names(api)[-1] == "CUSTOM_A"
    assert api.delete("/resource_classes/CUSTOM_A").status == 204
    gone = api.get("/resource_classes/CUSTOM_A")
    assert (gone.status, gone.text) == (404, "No such resource class CUSTOM_A.")
    assert api.post("/resource_classes", {"name": "CUSTOM_A"}).status == 201


@pytest.mark.parametrize("name", ["VCPU", "CUSTOM_", "CUSTOM_a", "CUSTOM_" + "A" * 249, "CUSTOM_A\n", ""])
def test_only_custom_names_are_created(api, name):
    before = names(api)
    posted = api.post("/resource_classes", {"name": name})
    assert (posted.status, posted.text[:23]) == (400, "JSON does not validate:")
    if name:
        put = api.put(f"/resource_classes/{name}")
        assert (put.status, put.text) == (400, posted.text.replace("{'name': ", "").removesuffix("}"))
    assert names(api) == before


def test_invalid_name_error_has_the_text_of_placement(api):
    assert api.post("/resource_classes", {"name": "x"}).text == (
        "JSON does not validate: 'x' does not match '^CUSTOM_[A-Z0-9_]+$'  Failed validating 'pattern' in "
        "schema['properties']['name']:     {'type': 'string', 'pattern': '^CUSTOM_[A-Z0-9_]+$', 'maxLength': 255}  "
        "On instance['name']:     'x'"
    )


@pytest.mark.parametrize("version", ["1.2", "1.6"])
def test_class_is_renamed_in_versions_before_1_7(api, version):
    api.post("/resource_classes", {"name": "CUSTOM_A"}, version=version)
    api.post("/resource_classes", {"name": "CUSTOM_B"}, version=version)
    one = provider(api, CUSTOM_A=4)

    def rename(name, to):
        return api.put(f"/resource_classes/{name}", {"name": to}, version=version)

    assert rename("CUSTOM_A", "CUSTOM_A").status == 200
    assert rename("CUSTOM_A", "CUSTOM_C").json["name"] == "CUSTOM_C"
    assert api.get(f"/resource_providers/{one}/usages").json["usages"] == {"CUSTOM_C": 0}
    assert rename("CUSTOM_C", "CUSTOM_B").text == "Resource class already exists: CUSTOM_B"
    assert rename("CUSTOM_A", "CUSTOM_B").text == "No such resource class CUSTOM_A."
    assert rename("VCPU", "CUSTOM_D").text == "Cannot update standard resource class VCPU"
    assert rename("CUSTOM_C", "VCPU").status == 400
    assert names(api)[-2:] == ["CUSTOM_C", "CUSTOM_B"]


@pytest.mark.parametrize("version", ["1.7", "1.39"])
def test_put_creates_or_confirms_a_class_since_version_1_7(api, version):
    for status in (201, 204):
        put = api.put("/resource_classes/CUSTOM_A", b"whatever", version=version)
        assert (put.status, put.body) == (status, b"")
        assert put.headers["location"] == "http://localhost/resource_classes/CUSTOM_A"
        assert "last-modified" not in put.headers


def test_class_in_use_or_standard_is_not_deleted(api):
    api.put("/resource_classes/CUSTOM_A")
    provider(api, CUSTOM_A=1)
    refused = api.delete("/resource_classes/CUSTOM_A")
    assert (refused.status, refused.text) == (
        409,
        "Error in delete resource class: Cannot delete resource class CUSTOM_A. Class is in use in inventory.",
    )
    standard = api.delete("/resource_classes/VCPU")
    assert (standard.status, standard.text) == (
        400,
        "Error in delete resource class: Cannot delete standard resource class VCPU.",
    )
    assert api.delete("/resource_classes/CUSTOM_B").status == 404


def test_resource_classes_are_persistent(api_factory):
    with api_factory() as api:
        for name in ("CUSTOM_A", "CUSTOM_B", "CUSTOM_C"):
            api.put(f"/resource_classes/{name}")
        api.put("/resource_classes/CUSTOM_B", {"name": "CUSTOM_D"}, version="1.6")
        api.delete("/resource_classes/CUSTOM_C")
        before = names(api)
    with api_factory() as api:
        assert names(api) == before
        assert before[-2:] == ["CUSTOM_A", "CUSTOM_D"]
        assert api.put("/resource_classes/CUSTOM_C").status == 201


def test_numbers_of_deleted_classes_are_reused_after_a_delay():
    store, clock = MemoryStore(), FixedClock()
    last = PutSymbol("resource_class", FIRST_NUMBERS["trait"] - 1, "CUSTOM_A")
    assert store.commit([Item(writes=(last,))]).refusals == [None]
    with placement_api(store, clock=clock) as api:
        root = provider(api, "a", CUSTOM_A=3)
        assert api.get("/allocation_candidates?resources=CUSTOM_A:1").json["provider_summaries"].keys() == {root}
        assert api.put(f"/resource_providers/{root}/inventories", empty_inventories(api, root)).status == 200
        assert api.delete("/resource_classes/CUSTOM_A").status == 204
        refused = api.put("/resource_classes/CUSTOM_B")
        assert refused.status == 400
        assert "55,535 custom resource classes were created already" in refused.text
        clock.time_s += REUSE_AFTER_S
        assert api.put("/resource_classes/CUSTOM_B").status == 201
        assert api.put("/resource_classes/CUSTOM_C").status == 400
        body = empty_inventories(api, root) | {"inventories": {"CUSTOM_B": {"total": 2}}}
        assert api.put(f"/resource_providers/{root}/inventories", body).status == 200
        summaries = api.get("/allocation_candidates?resources=CUSTOM_B:2").json["provider_summaries"]
        assert summaries[root]["resources"] == {"CUSTOM_B": {"capacity": 2, "used": 0}}
        assert api.get("/allocation_candidates?resources=CUSTOM_A:1").status == 400


def empty_inventories(api, root):
    shown = api.get(f"/resource_providers/{root}").json
    return {"resource_provider_generation": shown["generation"], "inventories": {}}
