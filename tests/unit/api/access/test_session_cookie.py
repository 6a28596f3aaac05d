"""Which requests may use the cookie of a browser session, and its name and attributes."""

import pytest

from roost.api.access.browser_session import KEY_BYTES, NONCE_BYTES, encode_base64url, seal
from roost.api.access.session_cookie import check_page, cookie_header, is_plain_http, open_session
from roost.api.http import Request
from roost.api.problems import Problem

KEY = bytes(range(KEY_BYTES))
KEY_TEXT = encode_base64url(KEY)
NOW_S, END_S = 1000.0, 2000


def sealed(token="secret", *, end_s=END_S, key=KEY):
    return seal(token, key, expires_at_s=end_s, nonce=bytes(NONCE_BYTES))


COOKIE = sealed()


def request(method="GET", *, url="http://localhost:8780", cookie=f"__Host-roost-8780={COOKIE}", key=KEY_TEXT, **more):
    """Return a request with cookie and key; a header None is left out."""
    headers = {"host": url.partition("://")[2], "cookie": cookie, "x-roost-session-key": key}
    headers |= {name.replace("_", "-"): text for name, text in more.items()}
    headers = {name: text for name, text in headers.items() if text is not None}
    return Request(method=method, path="/hosts", headers=headers, host_url=url)


def status_of(asked, **options):
    """Return the status of a refusal; None: the request is accepted."""
    try:
        open_session(asked, now_s=NOW_S, **options)
    except Problem as problem:
        return problem.status
    return None


def test_cookie_and_key_become_the_token():
    asked = request()
    open_session(asked, now_s=NOW_S)
    assert asked.headers == {"host": "localhost:8780", "x-auth-token": "secret"}
    assert asked.session_end_s == END_S


def test_request_without_cookie_and_key_stays_the_same():
    asked = request(cookie=None, key=None)
    headers = asked.headers
    open_session(asked, now_s=NOW_S)
    assert asked.headers is headers


@pytest.mark.parametrize("more", [{"x_auth_token": "other"}, {"x_auth_token": ""}, {"key": None}])
def test_cookie_has_no_effect_beside_a_token_or_without_a_key(more):
    asked = request(origin="http://evil.example", **more)
    open_session(asked, now_s=NOW_S)
    assert asked.session_end_s is None
    assert asked.headers.get("x-auth-token") == more.get("x_auth_token")
    assert {"cookie", "x-roost-session-key"}.isdisjoint(asked.headers)


@pytest.mark.parametrize(
    "more",
    [
        {"cookie": None},
        {"cookie": ""},
        {"cookie": "__Host-roost-8780"},
        {"cookie": f"other={COOKIE}"},
        {"cookie": f"__Host-roost-8781={COOKIE}"},
        {"cookie": f"__host-roost-8780={COOKIE}"},
        {"cookie": f"__Host-roost-8780={COOKIE},a"},
        {"cookie": f"__Host-roost-8780={sealed(end_s=1000)}"},
        {"cookie": f"__Host-roost-8780={sealed(key=bytes(KEY_BYTES))}"},
        {"cookie": "; ".join([*(["__Host-roost-8780=x"] * 8), f"__Host-roost-8780={COOKIE}"])},
        {"key": ""},
        {"key": encode_base64url(bytes(KEY_BYTES))},
        {"key": f"{KEY_TEXT}="},
        {"key": f"{KEY_TEXT},{KEY_TEXT}"},
        {"key": "é"},
    ],
)
def test_wrong_session_is_refused_and_named_in_the_error(more):
    asked = request(**more)
    with pytest.raises(Problem, match="sign in again") as caught:
        open_session(asked, now_s=NOW_S)
    assert caught.value.status == 401
    assert "x-auth-token" not in asked.headers
    open_session(request(**more), now_s=NOW_S, is_open=True)


@pytest.mark.parametrize("token", ["a\r\nx-roles: admin", "a\nb", "\0", "a\x7f", "", " a", "a ", "a\tb", "\x1b[2J"])
def test_sealed_text_that_no_header_can_have_is_refused(token):
    """A client can seal any text, since it can choose the key."""
    assert status_of(request(cookie=f"__Host-roost-8780={sealed(token)}")) == 401


@pytest.mark.parametrize(
    ("origin", "statuses"),
    [
        (None, (None, 403)),
        ("http://localhost:8780", (None, None)),
        ("HTTP://LOCALHOST:8780", (None, None)),
        ("https://localhost:8780", (None, None)),  # a proxy terminates TLS
        ("http://localhost", (403, 403)),
        ("http://localhost:8781", (403, 403)),
        ("http://localhost:8780.evil.example", (403, 403)),
        ("http://evil.example", (403, 403)),
        ("null", (403, 403)),
        ("", (403, 403)),
        ("http://localhost:8780,http://evil.example", (403, 403)),
    ],
)
def test_origin_must_be_the_server_and_changes_need_it(origin, statuses):
    assert tuple(status_of(request(method, origin=origin)) for method in ("GET", "POST")) == statuses
    assert tuple(status_of(request(method, origin=origin)) for method in ("HEAD", "DELETE")) == statuses


def test_pages_in_plain_http_are_foreign_to_a_tls_server():
    url = "https://roost.example"
    cookie = f"__Host-roost-443={COOKIE}"
    assert status_of(request("PUT", url=url, cookie=cookie, origin="https://roost.example")) is None
    assert status_of(request("PUT", url=url, cookie=cookie, origin="http://roost.example")) == 403
    assert status_of(request(url=url, cookie=f"roost-443={COOKIE}")) == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "", "same-origin,cross-site"])
def test_requests_of_other_sites_are_refused(site):
    assert status_of(request(sec_fetch_site=site)) == 403
    with pytest.raises(Problem, match="sec-fetch-site"):
        check_page(request(sec_fetch_site=site))
    assert status_of(request(sec_fetch_site="same-origin")) is None


def test_request_without_a_host_has_no_origin():
    asked = Request(method="POST", path="/", headers={"origin": "http://"}, host_url="http://")
    with pytest.raises(Problem, match="origin"):
        check_page(asked)
    check_page(Request(method="POST", path="/", headers={}, host_url="http://"))


@pytest.mark.parametrize(
    ("url", "origin", "name"),
    [
        ("https://roost.example", None, "__Host-roost-443"),
        ("https://roost.example:8780", None, "__Host-roost-8780"),
        ("http://localhost:8780", None, "__Host-roost-8780"),
        ("http://LOCALHOST", None, "__Host-roost-80"),
        ("http://127.0.0.1:8780", None, "__Host-roost-8780"),
        ("http://[::1]:8780", None, "__Host-roost-8780"),
        ("http://[::1]", None, "__Host-roost-80"),
        ("http://roost.example", "https://roost.example", "__Host-roost-443"),  # a proxy terminates TLS
        ("http://roost.example", "https://evil.example", "roost-80"),
        ("http://roost.example", None, "roost-80"),
        ("http://[fe80::1]:8780", None, "roost-8780"),
        ("http://roost.example:x;y=1", None, "roost-80"),
        ("http://localhost.evil.example:8780", None, "roost-8780"),
        ("http://", None, "roost-80"),
    ],
)
def test_name_and_attributes_follow_from_the_address(url, origin, name):
    asked = request(url=url, cookie=None, key=None, origin=origin)
    secure = "; Secure" * name.startswith("__Host-")
    expected = f"{name}=abc; Max-Age=60; Path=/; HttpOnly; SameSite=Strict{secure}"
    assert cookie_header(asked, "abc", age_max_s=60) == {"set-cookie": expected}
    assert is_plain_http(asked) == (not secure)
    assert status_of(request(url=url, cookie=f"a=b; {name}={COOKIE} ;c")) is None
