"""Sealed cookies: cookie and key together hold a token, and each alone reveals nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.api.access.browser_session import (
    KEY_BYTES,
    NONCE_BYTES,
    TOKEN_BYTES_MAX,
    Session,
    decode_base64url,
    encode_base64url,
    seal,
    unseal,
)

KEY, NONCE = bytes(range(KEY_BYTES)), bytes(range(NONCE_BYTES))
TOKENS = st.text(st.characters(codec="latin-1"), max_size=TOKEN_BYTES_MAX)
KEYS = st.binary(min_size=KEY_BYTES, max_size=KEY_BYTES)
NONCES = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)
COOKIE = seal("0123456789abcdef.secret", KEY, expires_at_s=1000, nonce=NONCE)


@given(TOKENS, KEYS, NONCES, st.integers(1, 2**40))
def test_cookie_and_key_return_the_token_until_its_expiry(token, key, nonce, expires_at_s):
    cookie = seal(token, key, expires_at_s=expires_at_s, nonce=nonce)
    assert unseal(cookie, key, now_s=expires_at_s - 0.001) == Session(token=token, expires_at_s=expires_at_s)
    assert unseal(cookie, key, now_s=expires_at_s) is None


@given(st.data())
def test_any_other_bit_of_cookie_or_key_is_refused(data):
    raw = decode_base64url(COOKIE)
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    assert unseal(encode_base64url(flip(raw, bit)), KEY, now_s=0) is None
    assert unseal(COOKIE, flip(KEY, bit % (8 * KEY_BYTES)), now_s=0) is None


@given(st.integers(0, len(COOKIE) - 1), st.characters(codec="ascii"))
def test_any_other_character_of_a_cookie_is_refused(at, character):
    changed = COOKIE[:at] + character + COOKIE[at + 1 :]
    assert (unseal(changed, KEY, now_s=0) is None) == (changed != COOKIE)


@given(st.text(max_size=200) | st.binary(max_size=4000).map(encode_base64url), KEYS)
def test_other_texts_are_no_cookies(text, key):
    assert unseal(text, key, now_s=0) is None


@pytest.mark.parametrize(
    "cookie",
    ["", "A", COOKIE + "=", COOKIE + "A", COOKIE[:-1], f" {COOKIE}", COOKIE * 2, "A" * 1_000_000, "é", "\ud800"],
)
def test_damaged_cookies_are_refused(cookie):
    assert unseal(cookie, KEY, now_s=0) is None


@pytest.mark.parametrize("key", [b"", KEY[:-1], KEY + b"\0", KEY[::-1], b"\0" * KEY_BYTES])
def test_other_keys_are_refused(key):
    assert unseal(COOKIE, key, now_s=0) is None


def test_length_of_a_cookie_does_not_reveal_the_length_of_a_token():
    sizes = {length: len(seal("t" * length, KEY, expires_at_s=1, nonce=NONCE)) for length in range(TOKEN_BYTES_MAX + 1)}
    assert len({sizes[length] for length in range(700)}) == 1  # the tokens of Roost, and Keystone's Fernet tokens
    assert len(set(sizes.values())) == 4


def test_longest_cookie_fits_into_a_browser():
    cookie = seal("t" * TOKEN_BYTES_MAX, KEY, expires_at_s=1, nonce=NONCE)
    attributes = "__Host-roost-65535=; Max-Age=31536000; Path=/; HttpOnly; SameSite=Strict; Secure"
    assert len(cookie) + len(attributes) <= 4096
    assert unseal(cookie, KEY, now_s=0).token == "t" * TOKEN_BYTES_MAX
    with pytest.raises(AssertionError):
        seal("t" * (TOKEN_BYTES_MAX + 1), KEY, expires_at_s=1, nonce=NONCE)


def test_nonce_changes_the_whole_cookie():
    """Two cookies under one key do not reveal the difference of their tokens."""
    first, second = (
        decode_base64url(seal("same token", KEY, expires_at_s=1, nonce=nonce)) for nonce in (NONCE, NONCE[::-1])
    )
    same = sum(left == right for left, right in zip(first[1 + NONCE_BYTES :], second[1 + NONCE_BYTES :], strict=True))
    assert same < 20


def test_cookie_has_the_documented_form():
    """A second implementation, from the formula in the docstring."""
    import hashlib
    import hmac

    def derive(purpose):
        return hmac.digest(KEY, b"roost browser session 1: " + purpose, "sha256")

    raw = decode_base64url(COOKIE)
    version, nonce, ciphertext, tag = raw[:1], raw[1:17], raw[17:-32], raw[-32:]
    stream = hashlib.shake_256(derive(b"keystream") + nonce).digest(720)
    plain = bytes(left ^ right for left, right in zip(ciphertext, stream, strict=True))
    assert (version, nonce) == (b"\x01", NONCE)
    assert plain == (1000).to_bytes(8) + (23).to_bytes(2) + b"0123456789abcdef.secret" + bytes(720 - 33)
    assert tag == hmac.digest(derive(b"tag"), version + nonce + ciphertext, "sha256")


@given(st.binary(max_size=100))
def test_each_value_has_one_text(data):
    text = encode_base64url(data)
    assert decode_base64url(text) == data
    for other in (text + "=", text + "\n", f" {text}", text + "!"):
        assert decode_base64url(other) is None


def flip(data, bit):
    """Return bytes with one other bit."""
    return bytes(each ^ (1 << bit % 8 if at == bit // 8 else 0) for at, each in enumerate(data))
