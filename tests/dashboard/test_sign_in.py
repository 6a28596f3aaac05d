"""Signing in and out, roles, and the end of a session, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from roost.api.access.authentication import as_toml, new_token
from tests.support.servers.servers import serve


@pytest.fixture
def guarded(tmp_path):
    """Yield a server with tokens of an administrator and of a reader, and their texts."""
    texts = {}
    entries = []
    for name, roles in (("ada", ("admin",)), ("rita", ("reader",))):
        texts[name], entry = new_token(name, roles=roles)
        entries.append(as_toml(entry))
    file = tmp_path / "tokens.toml"
    file.write_text("".join(entries))
    file.chmod(0o600)
    settings = f'auth_strategy = "tokens"\ntokens_file = "{file}"'
    with serve(noun="up", folder=tmp_path, settings=settings) as server:
        yield server, texts, file


def sign_in(page, token):
    """Type a token into the form."""
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_administrator_signs_in_and_out(guarded, open_tab):
    server, texts, _ = guarded
    tab = open_tab(server.address)
    page = tab.open("/decisions")
    sign_in(page, texts["ada"])
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    expect(page.get_by_text("· ada")).to_be_visible()
    (cookie,) = tab.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert texts["ada"] not in cookie["value"]
    assert texts["ada"] not in page.evaluate("JSON.stringify(localStorage)")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert tab.context.cookies() == []
    assert page.evaluate("localStorage.length") == 0


def test_unknown_token_is_one_sentence(guarded, open_tab):
    server, _, _ = guarded
    page = open_tab(server.address).open("/")
    sign_in(page, "no-such-token")
    expect(page.get_by_role("alert")).to_have_text("The server does not know this token.")


def test_session_lasts_over_reloads_and_tabs(guarded, open_tab):
    server, texts, _ = guarded
    tab = open_tab(server.address)
    page = tab.open("/decisions")
    sign_in(page, texts["ada"])
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    second = tab.new_page()
    second.goto(f"{server.address}/ui/decisions")
    expect(second.get_by_role("heading", name="Decisions")).to_be_visible()


def test_reader_sees_no_acts(guarded, open_tab):
    server, texts, _ = guarded
    page = open_tab(server.address).open("/try")
    sign_in(page, texts["rita"])
    expect(page.get_by_text("Your roles do not allow you to try requests.")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Place it"))).to_have_count(0)


def test_revoked_token_ends_the_session(guarded, open_tab):
    server, texts, file = guarded
    page = open_tab(server.address).open("/decisions")
    sign_in(page, texts["ada"])
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    file.write_text("")
    # The list is read again every five seconds, and the server reads its file each second.
    expect(page.get_by_label("Token")).to_be_visible(timeout=30_000)


def test_cookie_alone_opens_nothing(guarded, open_tab):
    server, texts, _ = guarded
    tab = open_tab(server.address)
    page = tab.open("/decisions")
    sign_in(page, texts["ada"])
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    (cookie,) = tab.context.cookies()
    thief = open_tab(server.address)
    thief.context.add_cookies([cookie])
    expect(thief.open("/decisions").get_by_label("Token")).to_be_visible()
    status, _, _ = server.ask("GET", "/v1/decisions", headers={"cookie": f"{cookie['name']}={cookie['value']}"})
    assert status == 401
