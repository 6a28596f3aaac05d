from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.servers.placement_records import generation, provider

UNKNOWN = "99999999-9999-9999-9999-999999999999"


def names(api, query=""):
    return api.get(f"/traits{query}").json["traits"]


def wear(api, uuid, generation, *traits, version="1.39"):
    body = {"traits": traits, "resource_provider_generation": generation}
    return api.put(f"/resource_providers/{uuid}/traits", body, version=version)


@pytest.fixture
def custom(api):
    """An API that has a few traits of its own."""
    for name in ("CUSTOM_C", "CUSTOM_A", "CUSTOM_B"):
        assert api.put(f"/traits/{name}").status == 201
    return api


def test_traits_came_with_version_1_6(api):
    one = provider(api)
    for method in ("GET", "PUT", "DELETE"):
        for path in ("/traits/CUSTOM_A", f"/resource_providers/{one}/traits"):
            assert api.ask(method, path, {}, version="1.5").status == 404
    assert api.get("/traits", version="1.5").status == 404


@pytest.mark.parametrize("version", ["1.6", "1.14", "1.15", "1.39"])
def test_a_trait_is_put_shown_and_deleted(api, version):
    for status in (201, 204):
        put = api.put("/traits/CUSTOM_A", version=version)
        assert (put.status, put.body) == (status, b"")
        assert put.headers["location"] == "http://localhost/traits/CUSTOM_A"
        assert ("last-modified" in put.headers) == (version in ("1.15", "1.39"))
    shown = api.get("/traits/CUSTOM_A", version=version)
    assert (shown.status, shown.body) == (204, b"")
    assert ("last-modified" in shown.headers) == (version in ("1.15", "1.39"))
    assert api.delete("/traits/CUSTOM_A", version=version).status == 204
    for gone in (api.get("/traits/CUSTOM_A"), api.delete("/traits/CUSTOM_A")):
        assert (gone.status, gone.text) == (404, "No such trait(s): CUSTOM_A.")


@pytest.mark.parametrize("name", ["CUSTOM_", "CUSTOM_a", "GOLD", "MISC_SHARES_VIA_AGGREGATE", "CUSTOM_" + "A" * 249])
def test_only_custom_traits_are_put(api, name):
    before = names(api)
    put = api.put(f"/traits/{name}")
    assert put.status == 400
    assert put.text == (
        "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "
        '"CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
    )
    assert names(api) == before


@pytest.mark.parametrize(
    ("query", "found"),
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
def test_traits_are_listed_by_name_and_by_whether_they_are_worn(custom, query, found):
    wear(custom, provider(custom), 0, "CUSTOM_A")
    assert names(custom, f"?{query}") == [f"CUSTOM_{letter}" for letter in found]


def test_a_filter_of_another_kind_is_none(custom):
    assert names(custom, "?name=endswith:A") == names(custom)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("name=A", 'form: ?name=[in|startswith]:[name1,name2|prefix]. Got: "A"'),
        ("name=A&associated=1", 'form: ?name=[in|startswith]:[name1,name2|prefix]. Got: "A"'),
        ("associated=1", 'The query parameter "associated" only accepts "true" or "false"'),
        ("colour=red&name=A", "Additional properties are not allowed ('colour' was unexpected)"),
    ],
)
def test_a_filter_that_cannot_be_meant_is_refused(api, query, problem):
    answer = api.get(f"/traits?{query}")
    assert answer.status == 400
    assert problem in answer.text


def test_a_generation_rises_only_when_what_is_worn_changes(custom):
    one = provider(custom)
    put = wear(custom, one, 0, "CUSTOM_C", "CUSTOM_A", "CUSTOM_C")
    assert put.json == {"traits": ["CUSTOM_A", "CUSTOM_C"], "resource_provider_generation": 1}
    assert wear(custom, one, 1, "CUSTOM_A", "CUSTOM_C").json == put.json
    shown = custom.get(f"/resource_providers/{one}/traits")
    assert shown.json == {"traits": ["CUSTOM_C", "CUSTOM_A"], "resource_provider_generation": 1}
    assert wear(custom, one, 1).json == {"traits": [], "resource_provider_generation": 2}
    wear(custom, one, 2, "CUSTOM_B")
    for _ in range(2):
        assert custom.delete(f"/resource_providers/{one}/traits").status == 204
        assert custom.get(f"/resource_providers/{one}/traits").json["resource_provider_generation"] == 4


def test_the_schema_comes_before_the_provider_the_generation_and_the_names(api):
    one = provider(api)
    body = {"traits": ["A", "B", "A"], "resource_provider_generation": 7}

    def wrong(uuid, body):
        answer = api.put(f"/resource_providers/{uuid}/traits", body)
        return answer.status, answer.text.partition("  ")[0], answer.code

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


def test_a_provider_that_is_not_there_wears_nothing(api):
    shown = api.get(f"/resource_providers/{UNKNOWN}/traits")
    said = f"No resource provider with uuid {UNKNOWN} found"
    assert (shown.status, shown.text) == (404, f"{said}: {said}")
    gone = api.delete(f"/resource_providers/{UNKNOWN}/traits")
    assert (gone.status, gone.text) == (404, said)


def test_a_trait_that_is_worn_stays(custom):
    one = provider(custom)
    wear(custom, one, 0, "CUSTOM_A")
    kept = custom.delete("/traits/CUSTOM_A")
    assert (kept.status, kept.text) == (409, "The trait CUSTOM_A is in use by a resource provider.")
    custom.delete(f"/resource_providers/{one}/traits")
    assert custom.delete("/traits/CUSTOM_A").status == 204
    assert wear(custom, one, 2, "CUSTOM_A").text == "No such trait CUSTOM_A"


def test_the_standard_traits_are_there_and_stay(api):
    assert "HW_CPU_X86_AVX2" in names(api)
    kept = api.delete("/traits/HW_CPU_X86_AVX2")
    assert (kept.status, kept.text) == (400, "Cannot delete standard trait HW_CPU_X86_AVX2.")


def test_many_clients_create_many_traits_at_once(api):
    wanted = [f"CUSTOM_{number}" for number in range(64)]
    with ThreadPoolExecutor(32) as clients:
        answers = list(clients.map(lambda name: api.put(f"/traits/{name}").status, wanted))
    assert answers == [201] * 64
    assert sorted(names(api, "?name=startswith:CUSTOM")) == sorted(wanted)


def test_what_is_worn_lasts(lasting):
    with lasting() as api:
        one = provider(api)
        for name in ("CUSTOM_A", "CUSTOM_B"):
            api.put(f"/traits/{name}")
        before = wear(api, one, 0, "CUSTOM_A").json
        api.delete("/traits/CUSTOM_B")
    with lasting() as api:
        assert api.get(f"/resource_providers/{one}/traits").json == before
        assert names(api, "?name=startswith:CUSTOM") == ["CUSTOM_A"]


def test_summaries_of_candidates_list_traits_in_the_order_in_which_they_were_created(api):
    root = provider(api, "a", VCPU=4)
    for name in ("CUSTOM_Z", "CUSTOM_A"):
        api.put(f"/traits/{name}")
    worn = {
        "traits": ["CUSTOM_A", "HW_CPU_X86_AVX", "CUSTOM_Z"],
        "resource_provider_generation": generation(api, "a"),
    }
    assert api.put(f"/resource_providers/{root}/traits", worn).status == 200
    found = api.get("/allocation_candidates?resources=VCPU:1").json["provider_summaries"][root]
    assert found["traits"] == ["HW_CPU_X86_AVX", "CUSTOM_Z", "CUSTOM_A"]
