from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.servers.placement_records import generation, provider

UNKNOWN = "99999999-9999-9999-9999-999999999999"


def names(api, query=""):
    return api.get(f"/traits{query}").json["traits"]


def set_traits(api, uuid, generation, *traits, version="1.39"):
    body = {"traits": traits, "resource_provider_generation": generation}
    return api.put(f"/resource_providers/{uuid}/traits", body, version=version)


@pytest.fixture
def custom_api(api):
    """An API with three custom traits."""
    for name in ("CUSTOM_C", "CUSTOM_A", "CUSTOM_B"):
        assert api.put(f"/traits/{name}").status == 201
    return api


def test_traits_require_version_1_6(api):
    one = provider(api)
    for method in ("GET", "PUT", "DELETE"):
        for path in ("/traits/CUSTOM_A", f"/resource_providers/{one}/traits"):
            assert api.ask(method, path, {}, version="1.5").status == 404
    assert api.get("/traits", version="1.5").status == 404


@pytest.mark.parametrize("version", ["1.6", "1.14", "1.15", "1.39"])
def test_trait_is_created_shown_and_deleted(api, version):
    for status in (201, 204):
        put = api.put("/traits/CUSTOM_A", version=version)
        assert (put.status, put.body) == (status, b"")
        assert put.headers["location"] == "http://localhost/traits/CUSTOM_A"
        assert ("last-modified" in put.headers) == (version in ("1.15", "1.39"))
    shown = api.get("/traits/CUSTOM_A", version=version)
    assert (shown.status, shown.body) == (204, b"")
    assert ("last-modified" in shown.headers) == (version in ("1.15", "1.39"))
    assert api.delete("/traits/CUSTOM_A", version=version).status == 204
    for missing in (api.get("/traits/CUSTOM_A"), api.delete("/traits/CUSTOM_A")):
        assert (missing.status, missing.text) == (404, "No such trait(s): CUSTOM_A.")


@pytest.mark.parametrize("name", ["CUSTOM_", "CUSTOM_a", "GOLD", "MISC_SHARES_VIA_AGGREGATE", "CUSTOM_" + "A" * 249])
def test_only_custom_traits_are_created(api, name):
    before = names(api)
    put = api.put(f"/traits/{name}")
    assert put.status == 400
    assert put.text == (
        "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "
        '"CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
    )
    assert names(api) == before


@pytest.mark.parametrize(
    ("query", "letters"),
    [
        ("name=in:CUSTOM_B,CUSTOM_C,CUSTOM_D", "CB"),
        ("name=in:", ""),
        ("name=startswith:CUSTOM_", "CAB"),
        ("name=startswith:custom_a", "A"),
        ("name=startswith:CUSTOM%25B", "B"),
        ("name=startswith:CUSTO__A", "A"),
        ("name=startswith:CUSTOM.A", ""),
        ("name=startswith:CUSTOM&associated=true", "A"),
        ("name=startswith:CUSTOM&associated=FALSE", "CB"),
        ("name=startswith:CUSTOM&associated=nonsense&associated=true", "A"),
        ("name=in:CUSTOM_A&name=in:CUSTOM_B", "B"),
    ],
)
def test_traits_are_filtered_by_name_and_association(custom_api, query, letters):
    set_traits(custom_api, provider(custom_api), 0, "CUSTOM_A")
    assert names(custom_api, f"?{query}") == [f"CUSTOM_{letter}" for letter in letters]


def test_unknown_name_operator_is_ignored(custom_api):
    assert names(custom_api, "?name=endswith:A") == names(custom_api)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("name=A", 'form: ?name=[in|startswith]:[name1,name2|prefix]. Got: "A"'),
        ("name=A&associated=1", 'form: ?name=[in|startswith]:[name1,name2|prefix]. Got: "A"'),
        ("associated=1", 'The query parameter "associated" only accepts "true" or "false"'),
        ("colour=red&name=A", "Additional properties are not allowed ('colour' was unexpected)"),
    ],
)
def test_invalid_trait_filter_is_refused(api, query, problem):
    response = api.get(f"/traits?{query}")
    assert response.status == 400
    assert problem in response.text


def test_generation_rises_only_if_the_traits_change(custom_api):
    one = provider(custom_api)
    put = set_traits(custom_api, one, 0, "CUSTOM_C", "CUSTOM_A", "CUSTOM_C")
    assert put.json == {"traits": ["CUSTOM_A", "CUSTOM_C"], "resource_provider_generation": 1}
    assert set_traits(custom_api, one, 1, "CUSTOM_A", "CUSTOM_C").json == put.json
    shown = custom_api.get(f"/resource_providers/{one}/traits")
    assert shown.json == {"traits": ["CUSTOM_C", "CUSTOM_A"], "resource_provider_generation": 1}
    assert set_traits(custom_api, one, 1).json == {"traits": [], "resource_provider_generation": 2}
    set_traits(custom_api, one, 2, "CUSTOM_B")
    for _ in range(2):
        assert custom_api.delete(f"/resource_providers/{one}/traits").status == 204
        assert custom_api.get(f"/resource_providers/{one}/traits").json["resource_provider_generation"] == 4


def test_errors_are_reported_in_the_order_of_placement(api):
    one = provider(api)
    body = {"traits": ["A", "B", "A"], "resource_provider_generation": 7}

    def wrong(uuid, body):
        response = api.put(f"/resource_providers/{uuid}/traits", body)
        return response.status, response.text.partition("  ")[0], response.code

    default = "placement.undefined_code"
    assert wrong(UNKNOWN, {"traits": [1]})[1].startswith("JSON does not validate:")
    assert wrong(UNKNOWN, body) == (404, f"No resource provider with uuid {UNKNOWN} found", default)
    assert wrong(one, body) == (
        409,
        "Resource provider's generation already changed. Please update the generation and try again.",
        "placement.concurrent_update",
    )
    assert wrong(one, body | {"resource_provider_generation": 0}) == (400, "No such trait A, B", default)
    assert api.get(f"/resource_providers/{one}/traits").json["resource_provider_generation"] == 0


def test_traits_of_a_missing_provider_are_not_found(api):
    shown = api.get(f"/resource_providers/{UNKNOWN}/traits")
    message = f"No resource provider with uuid {UNKNOWN} found"
    assert (shown.status, shown.text) == (404, f"{message}: {message}")
    missing = api.delete(f"/resource_providers/{UNKNOWN}/traits")
    assert (missing.status, missing.text) == (404, message)


def test_trait_in_use_is_not_deleted(custom_api):
    one = provider(custom_api)
    set_traits(custom_api, one, 0, "CUSTOM_A")
    refused = custom_api.delete("/traits/CUSTOM_A")
    assert (refused.status, refused.text) == (409, "The trait CUSTOM_A is in use by a resource provider.")
    custom_api.delete(f"/resource_providers/{one}/traits")
    assert custom_api.delete("/traits/CUSTOM_A").status == 204
    assert set_traits(custom_api, one, 2, "CUSTOM_A").text == "No such trait CUSTOM_A"


def test_standard_traits_exist_and_cannot_be_deleted(api):
    assert "HW_CPU_X86_AVX2" in names(api)
    refused = api.delete("/traits/HW_CPU_X86_AVX2")
    assert (refused.status, refused.text) == (400, "Cannot delete standard trait HW_CPU_X86_AVX2.")


def test_concurrent_clients_create_many_traits(api):
    wanted = [f"CUSTOM_{number}" for number in range(64)]
    with ThreadPoolExecutor(32) as clients:
        answers = list(clients.map(lambda name: api.put(f"/traits/{name}").status, wanted))
    assert answers == [201] * 64
    assert sorted(names(api, "?name=startswith:CUSTOM")) == sorted(wanted)


def test_provider_traits_are_persistent(api_factory):
    with api_factory() as api:
        one = provider(api)
        for name in ("CUSTOM_A", "CUSTOM_B"):
            api.put(f"/traits/{name}")
        before = set_traits(api, one, 0, "CUSTOM_A").json
        api.delete("/traits/CUSTOM_B")
    with api_factory() as api:
        assert api.get(f"/resource_providers/{one}/traits").json == before
        assert names(api, "?name=startswith:CUSTOM") == ["CUSTOM_A"]


def test_summary_lists_traits_in_order_of_creation(api):
    root = provider(api, "a", VCPU=4)
    for name in ("CUSTOM_Z", "CUSTOM_A"):
        api.put(f"/traits/{name}")
    body = {
        "traits": ["CUSTOM_A", "HW_CPU_X86_AVX", "CUSTOM_Z"],
        "resource_provider_generation": generation(api, "a"),
    }
    assert api.put(f"/resource_providers/{root}/traits", body).status == 200
    summary = api.get("/allocation_candidates?resources=VCPU:1").json["provider_summaries"][root]
    assert summary["traits"] == ["HW_CPU_X86_AVX", "CUSTOM_Z", "CUSTOM_A"]
