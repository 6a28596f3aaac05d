import pytest

from tests.support.fleets.worlds import uuid_named
from tests.support.servers.placement_records import provider

A, B = uuid_named("a"), uuid_named("b")
UNKNOWN = "99999999-9999-9999-9999-999999999999"


def join(api, uuid, generation, *aggregates, version="1.39"):
    body = {"aggregates": aggregates, "resource_provider_generation": generation}
    return api.put(f"/resource_providers/{uuid}/aggregates", body, version=version)


def test_aggregates_require_version_1_1(api):
    one = provider(api)
    assert api.get(f"/resource_providers/{one}/aggregates", version="1.0").status == 404
    assert api.put(f"/resource_providers/{one}/aggregates", [], version="1.0").status == 404
    text = {"content-type": "text/plain"}
    assert api.put(f"/resource_providers/{one}/aggregates", [], version="1.0", headers=text).status == 415


@pytest.mark.parametrize("version", ["1.1", "1.18"])
def test_versions_before_1_19_put_a_bare_list_without_generation(api, version):
    one = provider(api)
    path = f"/resource_providers/{one}/aggregates"
    for aggregates in ([B, A], [A], []):
        assert api.put(path, aggregates, version=version).json == {"aggregates": aggregates}
        assert api.get(path, version=version).json == {"aggregates": aggregates}
    assert api.get(path).json["resource_provider_generation"] == 0


def test_version_1_19_requires_a_generation_and_always_raises_it(api):
    one = provider(api)
    for generation, aggregates in enumerate([[B, A], [B, A], [], []]):
        expected = {"aggregates": aggregates, "resource_provider_generation": generation + 1}
        assert join(api, one, generation, *aggregates).json == expected
        shown = api.get(f"/resource_providers/{one}/aggregates", version="1.19")
        assert shown.json == expected
        assert shown.headers["cache-control"] == "no-cache"
    late = join(api, one, 3, A)
    assert (late.status, late.code) == (409, "placement.concurrent_update")
    assert late.text == "Resource provider's generation already changed. Please update the generation and try again."


def test_spellings_of_a_uuid_are_one_aggregate(api):
    one = provider(api)
    response = join(api, one, 0, A.upper(), A.replace("-", ""), B)
    assert response.json["aggregates"] == [A, B]


@pytest.mark.parametrize("version", ["1.18", "1.19"])
def test_missing_provider_is_reported_before_schema_errors(api, version):
    response = api.put(f"/resource_providers/{UNKNOWN}/aggregates", {"x": 1}, version=version)
    message = f"No resource provider with uuid {UNKNOWN} found"
    assert (response.status, response.json["errors"][0]["detail"].split("\n\n ")[1]) == (404, f"{message}  ")
    assert api.get(f"/resource_providers/{UNKNOWN}/aggregates").text == message


@pytest.mark.parametrize(
    ("version", "body", "problem"),
    [
        ("1.18", {}, "{} is not of type 'array'"),
        ("1.18", ["x"], "'x' is not a 'uuid'"),
        ("1.18", [A, A], f"['{A}', '{A}'] has non-unique elements"),
        ("1.19", [], "[] is not of type 'object'"),
        ("1.19", {"aggregates": []}, "'resource_provider_generation' is a required property"),
        ("1.19", {"aggregates": [A, A], "resource_provider_generation": 0}, "has non-unique elements"),
        ("1.19", {"aggregates": [], "resource_provider_generation": 0, "x": 1}, "Additional properties"),
    ],
)
def test_invalid_list_of_aggregates_is_refused(api, version, body, problem):
    one = provider(api)
    response = api.put(f"/resource_providers/{one}/aggregates", body, version=version)
    assert response.status == 400
    assert problem in response.json["errors"][0]["detail"]


def test_aggregates_are_persistent(api_factory):
    with api_factory() as api:
        one = provider(api)
        join(api, one, 0, A, B)
        api.put(f"/resource_providers/{one}/aggregates", [B], version="1.18")
    with api_factory() as api:
        assert api.get(f"/resource_providers/{one}/aggregates").json == {
            "aggregates": [B],
            "resource_provider_generation": 1,
        }
