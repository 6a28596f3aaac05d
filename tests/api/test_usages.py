import pytest

from tests.support.servers.placement_records import hold, provider

UNKNOWN = "99999999-9999-9999-9999-999999999999"


@pytest.fixture
def used_api(api):
    """An API with two providers, used by consumers of two projects."""
    one = provider(api, "one", VCPU=8, DISK_GB=100)
    two = provider(api, "two", VCPU=100, MEMORY_MB=10_000)
    hold(api, "a", project="p", user="u", kind="INSTANCE", **{one: {"VCPU": 1}, two: {"VCPU": 2, "MEMORY_MB": 64}})
    hold(api, "b", project="p", user="v", kind="MIGRATION", **{two: {"VCPU": 3}})
    hold(api, "c", project="p", user="v", **{two: {"VCPU": 5}})
    hold(api, "d", project="q", user="u", kind="INSTANCE", **{two: {"MEMORY_MB": 7}})
    hold(api, "e", project="q", user="w", kind="INSTANCE", **{two: {"VCPU": 7}})
    api.one = one
    return api


def usages(api, query, **options):
    return api.get(f"/usages?{query}", **options).json["usages"]


@pytest.mark.parametrize("version", ["1.0", "1.39"])
def test_provider_usage_lists_every_class_of_its_inventory(used_api, version):
    response = used_api.get(f"/resource_providers/{used_api.one}/usages", version=version)
    assert response.json == {"resource_provider_generation": 2, "usages": {"VCPU": 1, "DISK_GB": 0}}
    assert ("last-modified" in response.headers) == (version == "1.39")


def test_usage_of_a_missing_provider_is_not_found(api):
    response = api.get(f"/resource_providers/{UNKNOWN}/usages")
    message = f"No resource provider with uuid {UNKNOWN} found"
    assert (response.status, response.text) == (404, f"{message}: {message}")


def test_project_usage_requires_version_1_9(used_api):
    assert used_api.get("/usages?project_id=p", version="1.8").status == 404
    assert usages(used_api, "project_id=p", version="1.9") == {"VCPU": 11, "MEMORY_MB": 64}
    assert usages(used_api, "project_id=p&user_id=v", version="1.37") == {"VCPU": 8}
    assert usages(used_api, "project_id=nobody", version="1.37") == {}


def test_usage_is_grouped_by_consumer_type_since_version_1_38(used_api):
    instance = {"INSTANCE": {"VCPU": 3, "MEMORY_MB": 64, "consumer_count": 1}}
    migration = {"MIGRATION": {"VCPU": 3, "consumer_count": 1}}
    unknown = {"unknown": {"VCPU": 5, "consumer_count": 1}}
    assert usages(used_api, "project_id=p") == unknown | instance | migration
    assert usages(used_api, "project_id=p&user_id=v") == unknown | migration
    assert usages(used_api, "project_id=p&consumer_type=MIGRATION") == migration
    assert usages(used_api, "project_id=p&consumer_type=unknown") == unknown
    assert usages(used_api, "project_id=p&consumer_type=UNKNOWN") == {}
    assert usages(used_api, "project_id=p&consumer_type=all") == {
        "all": {"VCPU": 11, "MEMORY_MB": 64, "consumer_count": 3}
    }
    assert usages(used_api, "project_id=nobody&consumer_type=all") == {}


def test_consumer_with_several_classes_counts_once(used_api):
    assert usages(used_api, "project_id=q") == {"INSTANCE": {"VCPU": 7, "MEMORY_MB": 7, "consumer_count": 2}}


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
def test_invalid_usage_query_is_refused(api, version, query, problem):
    response = api.get(f"/usages?{query}", version=version)
    assert response.status == 400
    assert f"Invalid query string parameters: {problem}" in response.json["errors"][0]["detail"]
