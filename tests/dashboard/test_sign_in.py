"""Signing in and out, roles, and the end of a session, in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.support.servers.servers import serve
from tests.support.servers.token_files import write_tokens


@pytest.fixture
def guarded(tmp_path):
    """Yield a server with tokens of an administrator and a reader, the tokens, and their file."""
    tokens, settings = write_tokens(tmp_path, {"ada": ("admin",), "rita": ("reader",)})
    with serve(noun="up", folder=tmp_path, settings=settings) as server:
        yield server, tokens, tmp_path / "tokens.toml"


def test_administrator_signs_in_and_out(guarded, open_tab):
    server, tokens, _ = guarded
    tab = open_tab(server.address)
    page = tab.open("/decisions")
    tab.sign_in(tokens["ada"])
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    expect(page.get_by_text("· ada")).to_be_visible()
    (cookie,) = tab.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert tokens["ada"] not in cookie["value"]
    assert tokens["ada"] not in page.evaluate("JSON.stringify(localStorage)")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert tab.context.cookies() == []
    assert page.evaluate("localStorage.length") == 0


def test_unknown_token_is_one_sentence(guarded, open_tab):
    server, _, _ = guarded
    tab = open_tab(server.address)
    page = tab.open("/")
    tab.sign_in("no-such-token")
    expect(page.get_by_role("alert")).to_have_text("The server does not know this token.")


def test_session_lasts_over_reloads_and_tabs(guarded, open_tab):
    server, tokens, _ = guarded
    tab = open_tab(server.address)
    page = tab.open("/decisions")
    tab.sign_in(tokens["ada"])
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    second = tab.new_page()
    second.goto(f"{server.address}/ui/decisions")
    expect(second.get_by_role("heading", name="Decisions")).to_be_visible()


def test_reader_sees_no_acts(guarded, open_tab):
    server, tokens, _ = guarded
    tab = open_tab(server.address)
    page = tab.open("/try")
    tab.sign_in(tokens["rita"])
    expect(page.get_by_text("Your roles do not allow you to try requests.")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Place it"))).to_have_count(0)


def test_revoked_token_ends_the_session(guarded, open_tab):
    server, tokens, file = guarded
    tab = open_tab(server.address)
    page = tab.open("/decisions")
    tab.sign_in(tokens["ada"])
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    file.write_text("")
    # The list is read again every five seconds, and the server reads its file each second.
    expect(page.get_by_label("Token")).to_be_visible(timeout=60_000)


def test_cookie_alone_opens_nothing(guarded, open_tab):
    server, tokens, _ = guarded
    tab = open_tab(server.address)
    page = tab.open("/decisions")
    tab.sign_in(tokens["ada"])
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
    (cookie,) = tab.context.cookies()
    thief = open_tab(server.address)
    thief.context.add_cookies([cookie])
    expect(thief.open("/decisions").get_by_label("Token")).to_be_visible()
    status, _, _ = server.ask("GET", "/v1/decisions", headers={"cookie": f"{cookie['name']}={cookie['value']}"})
    assert status == 401
