import hashlib

import pytest

from roost.api.access.authentication import Token, Tokens, as_toml, new_token, read_tokens
from roost.errors import BadSettings


def user_of(tokens, text):
    identity = tokens.identify({"x-auth-token": text})
    return None if identity is None else identity.user_id


def test_token_is_found_by_its_key_prefix():
    (one, stored_one), (two, stored_two) = new_token("one"), new_token("two")
    tokens = Tokens([stored_one, stored_two])
    assert [user_of(tokens, each) for each in (one, two, "", ".", "x.y", one[:-1], stored_one.key)] == [
        "one",
        "two",
    ] + [None] * 5
    swapped = f"{stored_two.key}.{one.partition('.')[2]}"
    assert user_of(tokens, swapped) is None


def test_token_without_a_key_is_still_accepted():
    # The former format of `roost token create`: SHA-256 of the salt and the text.
    text, salt = "a-token-without-a-dot", bytes(range(16))
    older = Token(name="old", sha256=f"{salt.hex()}:{hashlib.sha256(salt + text.encode()).hexdigest()}")
    tokens = Tokens([new_token("new")[1], older])
    assert [user_of(tokens, each) for each in (text, f"x{text}", f".{text}")] == ["old", None, None]
    assert "key" not in as_toml(older)


def test_request_is_compared_only_with_tokens_of_its_key(monkeypatch):
    pairs = [new_token(f"user-{number}") for number in range(50)]
    tokens = Tokens([stored for _, stored in pairs])
    names = []
    original = type(pairs[0][1]).matches

    def matches(token, text):
        names.append(token.name)
        return original(token, text)

    monkeypatch.setattr(type(pairs[0][1]), "matches", matches)
    assert user_of(tokens, pairs[7][0]) == "user-7"
    assert user_of(tokens, "nobody knows this one") is None
    assert names == ["user-7"]


def test_token_file_keeps_keys_and_an_invalid_key_is_refused(tmp_path):
    _, stored = new_token("one")
    path = tmp_path / "tokens.toml"
    path.write_text(as_toml(stored))
    assert read_tokens(path) == (stored,)
    path.write_text(as_toml(stored).replace(stored.key, "no key"))
    with pytest.raises(BadSettings, match="key of one"):
        read_tokens(path)
