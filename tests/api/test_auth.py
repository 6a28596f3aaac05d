"""Authentication: identities from headers and from tokens."""

import msgspec
import pytest

from roost.api.access.authentication import Tokens, as_toml, new_token, read_tokens, trust_headers
from roost.errors import BadRequest, BadSettings


def identify(**headers):
    return trust_headers({name.replace("_", "-"): value for name, value in headers.items()})


def test_noauth2_takes_the_identity_from_the_headers():
    identity = identify(x_auth_token="bob:shop")
    assert (identity.user_id, identity.project_id, identity.roles, identity.is_system_scoped) == (
        "bob",
        "shop",
        frozenset(),
        False,
    )
    assert identify(x_auth_token="bob").project_id == "bob"
    assert identify(x_auth_token="bob:p:q").project_id == "p:q"
    assert identify(x_auth_token="bob:shop", x_project_id="other").project_id == "other"
    assert identify(x_auth_token="admin:shop").roles == {"admin"}
    assert identify(x_auth_token="ADMIN").roles == frozenset()
    assert identify(x_auth_token="admin", x_roles="").roles == frozenset()
    assert identify(x_auth_token="bob", x_roles="Admin , reader").roles == {"admin", "reader"}
    assert identify(x_auth_token="bob", openstack_system_scope="all").is_system_scoped


def test_request_without_a_token_has_no_identity():
    assert identify() is None
    assert identify(x_auth_token="") is None
    assert identify(x_user_id="u", x_roles="admin") is None


def test_missing_token_is_reported_before_all_other_errors(api):
    for url in ("/resource_providers", "/nowhere"):
        answer = api.get(url, headers={"x-auth-token": ""}, version="9.9")
        assert (answer.status, answer.json["code"], answer.json["title"]) == (401, "401 Unauthorized", "Unauthorized")
        assert "openstack-api-version" not in answer.headers
        assert "vary" not in answer.headers
        assert answer.headers["x-openstack-request-id"].startswith("req-")


def test_version_document_needs_no_token(api):
    assert api.get("/", headers={"x-auth-token": ""}).status == 200


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html;q=0.1, application/json", "application/json"),
        ("text/*", "text/html; charset=UTF-8"),
        ("no such form", "text/html; charset=UTF-8"),
        ("application/xml", "text/plain; charset=UTF-8"),
        ("application/json;q=0", "text/plain; charset=UTF-8"),
    ],
)
def test_error_format_follows_the_accept_header(api, accept, content_type):
    for token in ("", "admin"):
        answer = api.application.enter(api.request("GET", "/x", headers={"x-auth-token": token, "accept": accept}))
        assert answer.headers["content-type"] == content_type
        assert b"Unauthorized" in answer.body or b"Not Found" in answer.body


def test_token_is_identified_by_its_stored_hash(tmp_path):
    text, stored = new_token('n"ova', project="service", roles=["Service"])
    other, _ = new_token("eve")
    path = tmp_path / "tokens.toml"
    path.write_text(as_toml(stored) + "\n" + as_toml(new_token("second")[1]))
    assert text not in path.read_text()
    tokens = Tokens(read_tokens(path))
    identity = tokens.identify({"x-auth-token": text})
    assert (identity.user_id, identity.project_id, identity.roles) == ('n"ova', "service", {"service"})
    for wrong in (other, text[:-1], text + "x", "", "é", stored.sha256):
        assert tokens.identify({"x-auth-token": wrong}) is None
    assert tokens.identify({}) is None


@pytest.mark.parametrize("name", ["plain", "tab\t", 'q"', "back\\slash", "é", "\x7f", "line\nfeed", "[x]"])
def test_token_file_preserves_special_characters_in_names(tmp_path, name):
    text, stored = new_token(name, project=name)
    (tmp_path / "tokens.toml").write_text(as_toml(stored), encoding="utf-8")
    assert Tokens(read_tokens(tmp_path / "tokens.toml")).identify({"x-auth-token": text}).user_id == name


def test_invalid_token_file_is_refused(tmp_path):
    path = tmp_path / "tokens.toml"
    for text, problem in [
        ("token", "is not valid TOML"),
        ("[[token]]", "missing required field"),
        ('[[token]]\nname = "a"\nsha256 = "abc"', "is invalid; create tokens with `roost token create`"),
        ('[[token]]\nname = ""\nsha256 = "abc"', "name must not be empty"),
        ('[[tokens]]\nname = "a"', "unknown field"),
    ]:
        path.write_text(text)
        with pytest.raises(BadSettings, match=problem):
            read_tokens(path)
    with pytest.raises(BadSettings, match="cannot be read"):
        read_tokens(tmp_path / "absent.toml")


def test_token_needs_a_name_and_roles_of_one_word():
    with pytest.raises(BadRequest, match="needs the name"):
        new_token("")
    with pytest.raises(BadRequest, match="one word"):
        new_token("a", roles=["a,b"])


def test_empty_token_list_accepts_no_token():
    assert Tokens(()).identify({"x-auth-token": "x"}) is None
    assert msgspec.structs.asdict(new_token("a")[1])["roles"] == ()
