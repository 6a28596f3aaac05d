"""A server with an existing placement.conf, policies and tokens."""

import json

from tests.support.fleets.products import roost
from tests.support.servers.servers import refused_start, serve


def run(*words, folder):
    """Run a command; return its exit code, output and errors."""
    result = roost(*words, cwd=folder)
    return result.returncode, result.stdout, result.stderr


def test_existing_placement_conf_works_and_unused_options_are_named(tmp_path):
    conf = tmp_path / "placement.conf"
    conf.write_text(f"""
[DEFAULT]
debug = true
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{tmp_path}/own.db
max_retries = 3
[oslo_policy]
enforce_new_defaults = false
[cors]
allowed_origin = https://a.example
""")
    (tmp_path / "policy.yaml").write_text('"placement:resource_providers:list": "role:auditor"\n"old": "@"\n')
    with serve("--conf", conf, folder=tmp_path) as server:
        assert (tmp_path / "own.db").exists()
        assert server.ask("GET", "/resource_providers")[0] == 403
        headers = {"x-auth-token": "eve", "x-roles": "auditor", "origin": "https://a.example"}
        status, response_headers, _ = server.ask("GET", "/resource_providers", headers=headers)
        assert (status, response_headers["access-control-allow-origin"]) == (200, "https://a.example")
        assert server.ask("POST", "/reshaper", {})[0] == 400
        server.stop()
    assert [line.partition(".conf: ")[2].strip() for line in server.errors if "placement.conf" in line] == [
        "[DEFAULT] debug has no effect: Roost does not need it",
        "[placement_database] max_retries has no effect: Roost does not need it",
    ]
    assert any("old is not a policy" in line for line in server.errors)


def test_unsupported_connection_names_the_remedy(tmp_path):
    conf = tmp_path / "placement.conf"
    conf.write_text("[api]\nauth_strategy = noauth2\n[placement_database]\nconnection = oracle+cx://u:secret@h/d\n")
    code, message = refused_start("--conf", conf, folder=tmp_path)
    assert code == 3
    assert "a database of the kind oracle cannot be served: give Roost's database with --database" in message
    assert "secret" not in message
    with serve("--conf", conf, "--database", tmp_path / "own.db", folder=tmp_path) as server:
        assert server.ask("GET", "/resource_providers")[0] == 200
        server.stop()
    assert "[placement_database] connection has no effect: --database overrides it" in server.said


def test_malformed_file_is_a_wrong_setting(tmp_path):
    conf = tmp_path / "old.conf"
    conf.write_text("[DEFAULT\ndebug = true\n")
    problem = f"{conf}:1: a section is not closed, or has no name"
    for option in ("--conf", "--nova-conf"):
        assert refused_start(option, conf, folder=tmp_path) == (3, f"roost: {problem}\n")


def test_policy_show_names_the_source_of_each_rule(tmp_path):
    (tmp_path / "p.yaml").write_text('"placement:traits:list": "@"\n')
    code, out, _ = run("policy", "show", "--policy-file", "p.yaml", "--legacy", folder=tmp_path)
    rules = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0
    assert rules["placement:traits:list"].split()[1:] == ["@", "p.yaml"]
    assert rules["service_api"].endswith("legacy default")
    code, out, _ = run("policy", "show", "--json", folder=tmp_path)
    assert ["POST /reshaper"] in [rule["operations"] for rule in json.loads(out)]


def test_only_created_tokens_are_accepted(tmp_path):
    code, text, _ = run("token", "create", "nova", "--role", "service", "--file", "tokens.toml", folder=tmp_path)
    assert code == 0
    assert (tmp_path / "tokens.toml").stat().st_mode & 0o777 == 0o600
    assert run("token", "create", "eve", "--file", "tokens.toml", folder=tmp_path)[0] == 0
    settings = f'auth_strategy = "tokens"\ntokens_file = "{tmp_path}/tokens.toml"'
    with serve("--allow-plain-http", settings=settings, listen="0.0.0.0:0", folder=tmp_path) as server:
        for token, status in ((text.strip(), 200), ("admin", 401), ("", 401)):
            assert server.ask("GET", "/resource_providers", headers={"x-auth-token": token})[0] == status


def test_provider_trees_are_limited_in_depth_and_size(tmp_path):
    with serve(settings="tree_depth_max = 3\ntree_providers_max = 5", folder=tmp_path) as server:

        def create(name, parent=None):
            body = {"name": name} if parent is None else {"name": name, "parent_provider_uuid": parent}
            status, _, answer = server.ask("POST", "/resource_providers", body)
            return answer["uuid"] if status == 200 else answer["errors"][0]["detail"]

        root = create("root")
        child = create("child", root)
        leaf = create("leaf", child)
        assert "placement.tree_depth_max" in create("deeper", leaf)
        create("second", child)
        create("third", child)
        assert "placement.tree_providers_max" in create("fourth", root)
        other = create("other")
        below = create("below", other)
        move = {"name": "other", "parent_provider_uuid": child}
        status, _, answer = server.ask("PUT", f"/resource_providers/{other}", move)
        assert (status, "placement.tree_providers_max" in answer["errors"][0]["detail"]) == (400, True)
        assert server.ask("PUT", f"/resource_providers/{below}", {"name": "b", "parent_provider_uuid": None})[0] == 200
        assert server.ask("GET", f"/resource_providers/{below}")[2]["root_provider_uuid"] == below
