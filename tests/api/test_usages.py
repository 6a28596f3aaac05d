import pytest

from tests.support.servers.placement_records import hold, provider

UNKNOWN = "99999999-9999-9999-9999-999999999999"


@pytest.fixture
def used(api):
    """An API with two providers and consumers of two projects on them."""
    one = provider(api, "one", VCPU=8, DISK_GB=100)
    two = provider(api, "two", VCPU=100, MEMORY_MB=10_000)
    hold(api, "a", project="p", user="u", kind="INSTANCE", **{one: {"VCPU": 1}, two: {"VCPU": 2, "MEMORY_MB": 64}})
    hold(api, "b", project="p", user="v", kind="MIGRATION", **{two: {"VCPU": 3}})
    hold(api, "c", project="p", user="v", **{two: {"VCPU": 5}})
    hold(api, "d", project="q", user="u", kind="INSTANCE", **{two: {"MEMORY_MB": 7}})
    hold(api, "e", project="q", user="w", kind="INSTANCE", **{two: {"VCPU": 7}})
    api.one = one
    return api


def of(api, query, **options):
    return api.get(f"/usages?{query}", **options).json["usages"]


@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_the_usage_of_a_provider_names_every_class_that_it_offers(used, version):
    shown = used.get(f"/resource_providers/{used.one}/usages", version=version)
    assert shown.json == {"resource_provider_generation": 2, "usages": {"VCPU": 1, "DISK_GB": 0}}
    assert ("last-modified" in shown.headers) == (version == "1.39")


def test_a_provider_that_is_not_there_uses_nothing(api):
    shown = api.get(f"/resource_providers/{UNKNOWN}/usages")
    said = f"No resource provider with uuid {UNKNOWN} found"
    assert (shown.status, shown.text) == (404, f"{said}: {said}")


def test_the_usage_of_a_project_came_with_version_1_9(used):
    assert used.get("/usages?project_id=p", version="1.8").status == 404
    assert of(used, "project_id=p", version="1.9") == {"VCPU": 11, "MEMORY_MB": 64}
    assert of(used, "project_id=p&user_id=v", version="1.37") == {"VCPU": 8}
    assert of(used, "project_id=nobody", version="1.37") == {}


def test_from_1_38_usage_is_told_by_consumer_type(used):
    instance = {"INSTANCE": {"VCPU": 3, "MEMORY_MB": 64, "consumer_count": 1}}
    migration = {"MIGRATION": {"VCPU": 3, "consumer_count": 1}}
    unknown = {"unknown": {"VCPU": 5, "consumer_count": 1}}
    assert of(used, "project_id=p") == unknown | instance | migration
    assert of(used, "project_id=p&user_id=v") == unknown | migration
    assert of(used, "project_id=p&consumer_type=MIGRATION") == migration
    assert of(used, "project_id=p&consumer_type=unknown") == unknown
    assert of(used, "project_id=p&consumer_type=UNKNOWN") == {}
    assert of(used, "project_id=p&consumer_type=all") == {"all": {"VCPU": 11, "MEMORY_MB": 64, "consumer_count": 3}}
    assert of(used, "project_id=nobody&consumer_type=all") == {}


def test_a_consumer_counts_once_whatever_it_holds(used):
    assert of(used, "project_id=q") == {"INSTANCE": {"VCPU": 7, "MEMORY_MB": 7, "consumer_count": 2}}


@pytest.mark.parametrize(
    ("version", "query", "problem"),
    [
        ("1.9", "", "'project_id' is a required property"),
        ("1.39", "user_id=u", "'project_id' is a required property"),
        ("1.39", "project_id=", "'' should be non-empty"),
        ("1.37", "project_id=p&consumer_type=all", "Additional properties are not allowed ('consumer_type' was"),
        ("1.38", "project_id=p&consumer_type=x", "'x' does not match '^[A-Z0-9_]+$|^all|^unknown$'"),
        ("1.39", f"project_id={'p' * 256}", f"'{'p' * 256}' is too long"),
    ],
)
def test_a_query_that_cannot_be_meant_is_refused(api, version, query, problem):
    answer = api.get(f"/usages?{query}", version=version)
    assert answer.status == 400
    assert f"Invalid query string parameters: {problem}" in answer.json["errors"][0]["detail"]
