import json

import pytest

from roost.api.access.policy import Policy, read_policy
from roost.api.http import Identity
from roost.api.placement.routes import table
from roost.errors import BadSettings

RESHAPE, USAGES, LIST = "placement:reshaper:reshape", "placement:usages", "placement:resource_providers:list"


def identity(*roles, project="p", is_system_scoped=False):
    return Identity(user_id="u", project_id=project, roles=frozenset(roles), is_system_scoped=is_system_scoped)


def allows(policy, name, *roles, project="p", of="p"):
    return policy.allows(name, identity(*roles, project=project), {"project_id": of})


def test_only_services_may_reshape_and_administrators_may_do_the_rest():
    policy = Policy()
    names = [each.name for each in policy.table if each.name.startswith("placement:")]
    assert len(names) == 33
    for name in names:
        assert allows(policy, name, "service")
        assert allows(policy, name, "admin") == (name != RESHAPE)
        assert allows(policy, name, "reader") == (name == USAGES)
        assert not allows(policy, name)


def test_legacy_defaults_let_administrators_reshape():
    policy = Policy(is_legacy=True)
    assert allows(policy, RESHAPE, "admin")
    assert allows(policy, RESHAPE, "service")
    assert not allows(policy, RESHAPE, "reader")
    assert allows(policy, USAGES, "admin", of="another")


def test_reader_may_read_usages_of_its_own_project_only():
    assert allows(Policy(), USAGES, "reader", project="p", of="p")
    assert not allows(Policy(), USAGES, "reader", project="p", of="q")
    assert not allows(Policy(), USAGES, project="p", of="p")


def test_system_scoped_token_is_refused_with_any_role():
    assert not Policy().allows(LIST, identity("admin", "service", is_system_scoped=True), {})


def test_policy_of_every_route_has_a_rule():
    known = {each.name for each in Policy().table}
    assert {route.policy for methods in table().values() for route in methods.values()} - {None} <= known


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("yaml", '# all may list\n"placement:resource_providers:list": "@"\n"admin_api": "role:root"\n'),
        ("json", json.dumps({LIST: "@", "admin_api": "role:root"})),
    ],
)
def test_policy_file_overrides_the_defaults(tmp_path, form, content):
    path = tmp_path / f"policy.{form}"
    path.write_text(content)
    policy = read_policy(path)
    assert allows(policy, LIST)
    assert allows(policy, USAGES, "root")
    assert not allows(policy, USAGES, "admin")
    sources = {each.name: each.source for each in policy.table}
    assert (sources[LIST], sources["admin_api"], sources[USAGES]) == (str(path), str(path), "default")
    assert policy.warnings == ()


def test_policy_file_overrides_legacy_rules(tmp_path):
    (tmp_path / "p.yaml").write_text("service_api: role:service")
    policy = read_policy(tmp_path / "p.yaml", is_legacy=True)
    assert not allows(policy, RESHAPE, "admin")


def test_an_empty_file_changes_nothing(tmp_path):
    (tmp_path / "p.yaml").write_text("# nothing yet\n")
    assert read_policy(tmp_path / "p.yaml").table == Policy().table


def test_rule_names_without_effect_cause_warnings():
    policy = Policy(
        {"system_admin_api": "role:admin", "placement:x": "@", "helper": "@", LIST: "rule:helper"}, origin="f"
    )
    assert len(policy.warnings) == 2
    assert "system_admin_api is deprecated" in policy.warnings[0]
    assert "placement:x is not a policy" in policy.warnings[1]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("role", "'role' is not a check"),
        ("admin_api", "'admin_api' is not a check"),
        ("role:a role:b", "'role:b' found, expected 'and', 'or' or the end"),
        ("role:a and", "ends before a check"),
        ("or role:a", "'or' found, expected a check"),
        ("(role:a", "a bracket is not closed"),
        ("role:a)", "')' found, expected"),
        ("not", "ends before a check"),
        ("http://x/y", "queries another server"),
        ("rule:absent", "refers to 'absent', which does not exist"),
        (f"rule:{LIST}", "refers to itself"),
        ("colour:red", "'colour' is not a kind of check"),
        ("(" * 5000 + "@" + ")" * 5000, "nested deeper than 100"),
    ],
)
def test_malformed_rule_is_refused(rule, problem):
    with pytest.raises(BadSettings, match="f: placement:resource_providers:list") as caught:
        Policy({LIST: rule}, origin="f")
    assert problem in str(caught.value)


def test_a_long_chain_of_rules_is_refused():
    chain = {f"r{number}": f"rule:r{number + 1}" for number in range(2000)} | {"r2000": "@"}
    with pytest.raises(BadSettings, match="chain of references"):
        Policy(chain, origin="f")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: [", "is neither YAML nor JSON"),
        (b"- a", "must be a mapping of names to rules"),
        (b"placement:usages:", "the rule must be a text, got None"),
        (b"placement:usages: [[role:a]]", "the rule must be a text"),
        (b"\xff\xfe\x00", "is neither YAML nor JSON"),
        (b"a: !!python/object/apply:os.system [ls]", "is neither YAML nor JSON"),
    ],
)
def test_malformed_policy_file_is_refused(tmp_path, content, problem):
    (tmp_path / "p.yaml").write_bytes(content)
    with pytest.raises(BadSettings) as caught:
        read_policy(tmp_path / "p.yaml")
    assert problem in str(caught.value)


def test_missing_policy_file_error_explains_how_to_use_defaults(tmp_path):
    with pytest.raises(BadSettings, match=r"does not exist; correct the path; to use the defaults, omit policy_file"):
        read_policy(tmp_path / "none.yaml")
