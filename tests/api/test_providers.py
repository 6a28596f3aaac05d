import pytest

from tests.support.fleets.worlds import uuid_named
from tests.support.servers.placement_records import hold, offer_at, provider

UNKNOWN = "99999999-9999-4999-8999-999999999999"
HOST, SPARE, NODE, DEVICE, DISK = map(uuid_named, ("host", "spare", "node", "device", "disk"))
AGGREGATE, OTHER = uuid_named("aggregate"), uuid_named("other")
_ITSELF = "parent provider UUID cannot be same as UUID. Please set parent provider UUID to None if there is no parent."
LINKS = {"1.0": 3, "1.1": 4, "1.5": 4, "1.6": 5, "1.10": 5, "1.11": 6, "1.39": 6}


def put(api, uuid, version="1.39", **body):
    return api.put(f"/resource_providers/{uuid}", body, version=version)


def list_names(api, query="", **options):
    response = api.get(f"/resource_providers{query}", **options)
    assert response.status == 200, response.text
    return [each["name"] for each in response.json["resource_providers"]]


def tree_of(api, name):
    shown = api.get(f"/resource_providers/{uuid_named(name)}").json
    return shown["parent_provider_uuid"], shown["root_provider_uuid"]


@pytest.fixture
def forest(api):
    """A host with a node with a device; a spare host; a disk in an aggregate with the first host."""
    for name, parent in {"host": None, "spare": None, "node": HOST, "device": NODE, "disk": None}.items():
        body = {"name": name, "uuid": uuid_named(name), "parent_provider_uuid": parent}
        assert api.post("/resource_providers", body).status == 200
    offer_at(api, HOST, MEMORY_MB=1024, DISK_GB=100)
    offer_at(api, NODE, VCPU=8)
    offer_at(api, DISK, DISK_GB=2000)
    for uuid, members in {HOST: [AGGREGATE, OTHER], DISK: [AGGREGATE]}.items():
        assert api.put(f"/resource_providers/{uuid}/aggregates", members, version="1.18").status == 200
    for name, uuid in {"CUSTOM_GOLD": HOST, "CUSTOM_SSD": DISK}.items():
        api.put(f"/traits/{name}")
        body = {"traits": [name], "resource_provider_generation": 1}
        assert api.put(f"/resource_providers/{uuid}/traits", body).status == 200
    return api


def test_provider_is_created_and_shown(api):
    created = api.post("/resource_providers", {"name": "one"})
    assert created.status == 200
    uuid = created.json["uuid"]
    assert created.headers["location"] == f"http://localhost/resource_providers/{uuid}"
    shown = api.get(f"/resource_providers/{uuid}")
    assert shown.json == created.json
    assert shown.headers["cache-control"] == "no-cache"
    assert api.get("/resource_providers").json == {"resource_providers": [shown.json]}


@pytest.mark.parametrize("version", LINKS)
def test_links_and_tree_fields_by_version(api, version):
    uuid = provider(api)
    shown = api.get(f"/resource_providers/{uuid}", version=version, prefix="/placement").json
    rels = ["self", "inventories", "usages", "aggregates", "traits", "allocations"][: LINKS[version]]
    base = f"/placement/resource_providers/{uuid}"
    hrefs = {rel: base if rel == "self" else f"{base}/{rel}" for rel in rels}
    assert {link["rel"]: link["href"] for link in shown["links"]} == hrefs
    assert ("root_provider_uuid" in shown) == (int(version.split(".")[1]) >= 14)
    assert api.get("/resource_providers", version=version, prefix="/placement").json == {"resource_providers": [shown]}


def test_creation_response_has_a_body_since_version_1_20(api):
    old, new = (api.post("/resource_providers", {"name": name}, version=name) for name in ("1.19", "1.20"))
    assert (old.status, old.body, new.status, new.json["name"]) == (201, b"", 200, "1.20")


def test_provider_uuid_is_normalized_and_found_in_one_spelling(api):
    created = api.post("/resource_providers", {"name": "one", "uuid": "{C0FFEE00C0FFEE00C0FFEE00C0FFEE00}"})
    assert created.json["uuid"] == "c0ffee00-c0ff-ee00-c0ff-ee00c0ffee00"
    assert api.get("/resource_providers/c0ffee00c0ffee00c0ffee00c0ffee00").status == 404
    assert api.get("/resource_providers/C0FFEE00-C0FF-EE00-C0FF-EE00C0FFEE00").status == 404


def test_duplicate_names_and_uuids_are_conflicts(forest):
    body = {"name": "host", "uuid": SPARE}
    texts = []
    for wrong in (body, {"name": "host"}, {"name": "new", "uuid": HOST}):
        response = forest.post("/resource_providers", wrong)
        assert (response.status, response.code) == (409, "placement.duplicate_name")
        texts.append(response.text)
    assert texts == [
        f"Conflicting resource provider uuid: {SPARE} already exists.",
        "Conflicting resource provider name: host already exists.",
        f"Conflicting resource provider uuid: {HOST} already exists.",
    ]
    assert put(forest, SPARE, name="host").text == "Conflicting resource provider host already exists."
    assert put(forest, HOST, name="host").status == 200


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"name": ""}, "name is required"),
        ({"name": "host", "parent_provider_uuid": UNKNOWN}, "parent provider UUID does not exist."),
        ({"name": "new", "parent_provider_uuid": HOST.replace("-", "")}, "parent provider UUID does not exist."),
        (
            {"name": "host", "parent_provider_uuid": DEVICE, "uuid": DEVICE},
            _ITSELF,
        ),
    ],
)
def test_invalid_creation_is_refused_with_the_reason(forest, body, reason):
    request = {"uuid": uuid_named("new"), **body}
    response = forest.post("/resource_providers", request)
    assert response.status == 400
    assert response.text == (
        f'Unable to create resource provider "{body["name"]}", {request["uuid"]}: '
        f"Object action create failed because: {reason}"
    )


def test_schema_fields_by_version(api):
    wrong = {"name": "one", "parent_provider_uuid": None}
    assert api.post("/resource_providers", wrong, version="1.13").status == 400
    assert api.post("/resource_providers", wrong, version="1.14").status == 201
    for version, key in (("1.2", "member_of"), ("1.3", "resources"), ("1.13", "in_tree"), ("1.17", "required")):
        response = api.get(f"/resource_providers?{key}=x", version=version)
        expected = f"Invalid query string parameters: Additional properties are not allowed ('{key}' was unexpected)"
        assert response.json["errors"][0]["detail"].partition("\n\n ")[2].startswith(expected)


def test_missing_provider_is_reported_before_an_invalid_body(api):
    text = f"No resource provider with uuid {UNKNOWN} found"
    for method in ("GET", "PUT"):
        response = api.ask(method, f"/resource_providers/{UNKNOWN}", b"no json")
        assert (response.status, response.text) == (404, text)
        assert "vary" not in response.headers
    assert api.delete(f"/resource_providers/{UNKNOWN}").text == f"{text} for delete"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", "host spare node device disk"),
        ("name=host", "host"),
        ("name=HOST", ""),
        ("name=", "host spare node device disk"),
        (f"uuid={HOST}&name=spare", ""),
        (f"in_tree={DEVICE}", "host node device"),
        (f"in_tree={UNKNOWN}&resources=CUSTOM_NONE:1", ""),
        ("resources=DISK_GB:100", "host disk"),
        ("resources=DISK_GB:101", "disk"),
        ("resources=DISK_GB:1,MEMORY_MB:1", "host"),
        ("resources=VCPU:9", ""),
        ("resources=VCPU:2147483648", ""),
        ("resources=VCPU:1&resources=MEMORY_MB:1", "host"),
        (f"member_of={AGGREGATE}", "host disk"),
        (f"member_of={AGGREGATE}&member_of={OTHER}", "host"),
        (f"member_of=in:{AGGREGATE},{UNKNOWN}", "host disk"),
        (f"member_of={UNKNOWN}&resources=CUSTOM_NONE:1", ""),
        (f"member_of=!{OTHER}", "spare node device disk"),
        (f"member_of=!in:{OTHER},{AGGREGATE}", "spare node device"),
        ("required=CUSTOM_GOLD", "host"),
        ("required= CUSTOM_GOLD ", "host"),
        ("required=CUSTOM_GOLD,CUSTOM_SSD", ""),
        ("required=in:CUSTOM_GOLD,CUSTOM_SSD", "host disk"),
        ("required=in:CUSTOM_GOLD,CUSTOM_SSD&required=!CUSTOM_SSD", "host"),
        ("required=CUSTOM_GOLD,!CUSTOM_GOLD", ""),
    ],
)
def test_filters_are_combined(forest, query, names):
    assert list_names(forest, f"?{query}") == names.split()


def test_last_repeated_required_counts_before_version_1_39(forest):
    query = "?required=CUSTOM_GOLD&required=CUSTOM_SSD"
    assert list_names(forest, query, version="1.38") == ["disk"]
    assert list_names(forest, query) == []


_RESOURCES = (
    "Badly formed resources parameter. Expected resources query string parameter in form: "
    "?resources=VCPU:2,MEMORY_MB:1024. Got: "
)
_MEMBERS = "Invalid query string parameters: Expected 'member_of' parameter to contain valid UUID(s). Got: "
_SEVERAL = (
    "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid microversion. "
    "Got:"
)
_TRAITS = "Invalid query string parameters: Expected 'required' parameter value of the form: "
_ANY = "in:HW_CPU_X86_VMX,CUSTOM_MAGIC"


@pytest.mark.parametrize(
    ("query", "version", "text"),
    [
        ("resources=", "1.39", f"{_RESOURCES}empty string."),
        ("resources=VCPU:1:2", "1.39", f"{_RESOURCES}VCPU:1:2."),
        ("resources=VCPU:1,", "1.39", f"{_RESOURCES}."),
        ("resources=VCPU:x", "1.39", "Requested resource VCPU expected positive integer amount. Got: x."),
        ("resources=VCPU:0", "1.39", "Requested resource VCPU requires amount >= 1. Got: 0."),
        (
            "resources=VCPU:9223372036854775808",
            "1.39",
            "Requested resource VCPU requires amount <= 9223372036854775807. Got: 9223372036854775808.",
        ),
        (
            "resources=VCPU:1,NONE:1",
            "1.39",
            "Invalid resource class in resources parameter: No such resource class NONE.",
        ),
        ("member_of=x&required=", "1.39", f"{_MEMBERS}x"),
        (f"member_of=in:{AGGREGATE},", "1.39", _MEMBERS),
        (f"member_of={AGGREGATE}&member_of=x", "1.23", "Multiple member_of parameters are not supported"),
        (
            f"member_of={AGGREGATE}&member_of=!{OTHER}&member_of=x",
            "1.31",
            "Forbidden member_of parameters are not supported in the specified microversion",
        ),
        ("member_of=!x", "1.31", f"{_MEMBERS}x"),
        (
            "member_of=x,y",
            "1.39",
            f"{_SEVERAL} x,y",
        ),
        ("required=A,&resources=x", "1.39", f"{_TRAITS}HW_CPU_X86_VMX,!CUSTOM_MAGIC. Got an empty trait in: A,"),
        ("required=!", "1.21", f"{_TRAITS}HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: !"),
        ("required=A,!B", "1.21", f"{_TRAITS}HW_CPU_X86_VMX,CUSTOM_MAGIC. Got: A,!B"),
        ("required=in:,A", "1.39", f"{_TRAITS}{_ANY}. Got an empty trait in: in:,A"),
        (
            "required=in:A,!B",
            "1.39",
            f"Invalid query string parameters: The format '{_ANY}' does not support forbidden traits. Got: in:A,!B",
        ),
        (
            "required=in:A",
            "1.38",
            f"Invalid query string parameters: The format '{_ANY}' only supported since microversion 1.39. Got: in:A",
        ),
        (
            "required=!NONE,CUSTOM_GOLD,NADA&resources=NONE:1",
            "1.39",
            'Invalid trait(s) in "required" parameter: No such trait(s): NADA.',
        ),
        (
            "name=%ff",
            "1.0",
            "Invalid query string parameters: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
    ],
)
def test_invalid_filters_are_refused(forest, query, version, text):
    response = forest.get(f"/resource_providers?{query}", version=version)
    assert (response.status, response.text) == (400, text)


def test_renaming_keeps_the_generation(forest):
    renamed = put(forest, HOST, name="renamed")
    assert (renamed.status, renamed.json["name"], renamed.json["generation"]) == (200, "renamed", 2)
    assert list_names(forest, "?name=host") == []
    assert forest.get(f"/resource_providers/{HOST}").json == renamed.json


def test_subtree_moves_with_its_top_provider(forest):
    moved = put(forest, NODE, name="node", parent_provider_uuid=SPARE)
    assert (moved.json["parent_provider_uuid"], moved.json["root_provider_uuid"]) == (SPARE, SPARE)
    assert tree_of(forest, "device") == (NODE, SPARE)
    assert list_names(forest, f"?in_tree={HOST}") == ["host"]
    alone = put(forest, NODE, name="alone", parent_provider_uuid=None)
    assert (alone.json["parent_provider_uuid"], alone.json["root_provider_uuid"]) == (None, NODE)
    assert tree_of(forest, "device") == (NODE, NODE)
    assert list_names(forest, f"?in_tree={DEVICE}") == ["alone", "device"]


@pytest.mark.parametrize(
    ("version", "uuid", "parent", "reason"),
    [
        ("1.36", NODE, SPARE, "update failed because: re-parenting a provider is not currently allowed."),
        ("1.36", NODE, DEVICE, "update failed because: re-parenting a provider is not currently allowed."),
        ("1.36", NODE, None, "update failed because: un-parenting a provider is not currently allowed."),
        ("1.36", HOST, DEVICE, "update failed because: creating loop in the provider tree is not allowed."),
        ("1.37", NODE, DEVICE, "update failed because: creating loop in the provider tree is not allowed."),
        ("1.37", NODE, NODE, "update failed because: creating loop in the provider tree is not allowed."),
        ("1.37", NODE, UNKNOWN, "create failed because: parent provider UUID does not exist."),
    ],
)
def test_refused_move_leaves_the_provider_in_place(forest, version, uuid, parent, reason):
    before = forest.get("/resource_providers").json
    response = put(forest, uuid, version, name="spare", parent_provider_uuid=parent)
    assert response.status == 400
    assert response.text == f"Unable to save resource provider {uuid}: Object action {reason}"
    assert forest.get("/resource_providers").json == before


def test_root_may_get_a_first_parent_in_old_versions(forest):
    assert put(forest, SPARE, "1.14", name="spare", parent_provider_uuid=HOST).status == 200
    assert put(forest, SPARE, "1.14", name="spare", parent_provider_uuid=HOST).status == 200
    assert put(forest, SPARE, "1.13", name="other").status == 200
    assert tree_of(forest, "spare") == (HOST, HOST)


def test_provider_with_children_or_allocations_is_not_deleted(forest):
    parent = forest.delete(f"/resource_providers/{HOST}")
    assert (parent.status, parent.code) == (409, "placement.resource_provider.cannot_delete_parent")
    assert parent.text == f"Unable to delete parent resource provider {HOST}: It has child resource providers."
    hold(forest, "someone", **{DISK: {"DISK_GB": 1}})
    used = forest.delete(f"/resource_providers/{DISK}")
    assert (used.status, used.code) == (409, "placement.resource_provider.inuse")
    assert used.text == f"Unable to delete resource provider {DISK}: Resource provider has allocations."


def test_deleted_provider_loses_its_inventories_and_traits(forest):
    for uuid in (DEVICE, NODE, HOST):
        assert forest.delete(f"/resource_providers/{uuid}").status == 204
    assert list_names(forest) == ["spare", "disk"]
    assert provider(forest, "host") == HOST
    shown = forest.get(f"/resource_providers/{HOST}").json
    assert (shown["generation"], forest.get(f"/resource_providers/{HOST}/inventories").json["inventories"]) == (0, {})
    assert list_names(forest, "?required=CUSTOM_GOLD") == []


def test_provider_trees_are_persistent(api_factory):
    with api_factory() as api:
        for name in ("host", "spare", "node", "device"):
            provider(api, name)
        for uuid, parent in ((NODE, HOST), (DEVICE, NODE), (NODE, SPARE), (HOST, DEVICE)):
            name = api.get(f"/resource_providers/{uuid}").json["name"]
            assert put(api, uuid, name=name, parent_provider_uuid=parent).status == 200
        put(api, SPARE, name="top")
        before = api.get("/resource_providers").json
        assert {each["root_provider_uuid"] for each in before["resource_providers"]} == {SPARE}
    with api_factory() as api:
        assert api.get("/resource_providers").json == before
        assert api.delete(f"/resource_providers/{HOST}").status == 204
        assert list_names(api, f"?in_tree={NODE}") == ["top", "node", "device"]
