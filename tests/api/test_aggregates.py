import pytest

from tests.support.fleets.worlds import uuid_named
from tests.support.servers.placement_records import provider

A, B = uuid_named("a"), uuid_named("b")
UNKNOWN = "99999999-9999-9999-9999-999999999999"


def join(api, uuid, generation, *aggregates, version="1.39"):
    body = {"aggregates": aggregates, "resource_provider_generation": generation}
    return api.put(f"/resource_providers/{uuid}/aggregates", body, version=version)


def test_aggregates_came_with_version_1_1(api):
    one = provider(api)
    assert api.get(f"/resource_providers/{one}/aggregates", version="1.0").status == 404
    assert api.put(f"/resource_providers/{one}/aggregates", [], version="1.0").status == 404
    text = {"content-type": "text/plain"}
    assert api.put(f"/resource_providers/{one}/aggregates", [], version="1.0", headers=text).status == 415


@pytest.mark.parametrize("version", ["1.1", "1.18"])
def test_before_1_19_a_bare_list_is_put_and_no_generation_rises(api, version):
    one = provider(api)
    path = f"/resource_providers/{one}/aggregates"
    for aggregates in ([B, A], [A], []):
        assert api.put(path, aggregates, version=version).json == {"aggregates": aggregates}
        assert api.get(path, version=version).json == {"aggregates": aggregates}
    assert api.get(path).json["resource_provider_generation"] == 0


def test_from_1_19_a_generation_is_given_and_always_rises(api):
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


def test_a_uuid_is_one_aggregate_in_any_spelling(api):
    one = provider(api)
    joined = join(api, one, 0, A.upper(), A.replace("-", ""), B)
    assert joined.json["aggregates"] == [A, B]


@pytest.mark.parametrize("version", ["1.18", "1.19"])
def test_the_provider_comes_before_the_schema(api, version):
    answer = api.put(f"/resource_providers/{UNKNOWN}/aggregates", {"x": 1}, version=version)
    said = f"No resource provider with uuid {UNKNOWN} found"
    assert (answer.status, answer.json["errors"][0]["detail"].split("\n\n ")[1]) == (404, f"{said}  ")
    assert api.get(f"/resource_providers/{UNKNOWN}/aggregates").text == said


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
def test_what_is_no_list_of_uuids_is_refused(api, version, body, problem):
    one = provider(api)
    answer = api.put(f"/resource_providers/{one}/aggregates", body, version=version)
    assert answer.status == 400
    assert problem in answer.json["errors"][0]["detail"]


def test_what_was_joined_lasts(lasting):
    with lasting() as api:
        one = provider(api)
        join(api, one, 0, A, B)
        api.put(f"/resource_providers/{one}/aggregates", [B], version="1.18")
    with lasting() as api:
        assert api.get(f"/resource_providers/{one}/aggregates").json == {
            "aggregates": [B],
            "resource_provider_generation": 1,
        }
