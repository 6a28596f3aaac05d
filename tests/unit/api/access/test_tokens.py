import hashlib

import pytest

from roost.api.access.authentication import Token, Tokens, as_toml, new_token, read_tokens
from roost.errors import BadSettings


def who(tokens, text):
    found = tokens.identify({"x-auth-token": text})
    return None if found is None else found.user_id


def test_a_token_is_found_by_the_key_that_it_begins_with():
    (one, kept_one), (two, kept_two) = new_token("one"), new_token("two")
    tokens = Tokens([kept_one, kept_two])
    assert [who(tokens, each) for each in (one, two, "", ".", "x.y", one[:-1], kept_one.key)] == ["one", "two"] + [
        None
    ] * 5
    swapped = f"{kept_two.key}.{one.partition('.')[2]}"
    assert who(tokens, swapped) is None


def test_a_token_made_before_there_were_keys_is_still_accepted():
    # As `roost token create` wrote it then: SHA-256 of the salt and the text.
    text, salt = "a-token-without-a-dot", bytes(range(16))
    older = Token(name="old", sha256=f"{salt.hex()}:{hashlib.sha256(salt + text.encode()).hexdigest()}")
    tokens = Tokens([new_token("new")[1], older])
    assert [who(tokens, each) for each in (text, f"x{text}", f".{text}")] == ["old", None, None]
    assert "key" not in as_toml(older)


def test_each_request_is_compared_with_the_tokens_of_one_key_alone(monkeypatch):
    made = [new_token(f"user-{number}") for number in range(50)]
    tokens = Tokens([kept for _, kept in made])
    compared = []
    original = type(made[0][1]).matches

    def matches(token, text):
        compared.append(token.name)
        return original(token, text)

    monkeypatch.setattr(type(made[0][1]), "matches", matches)
    assert who(tokens, made[7][0]) == "user-7"
    assert who(tokens, "nobody knows this one") is None
    assert compared == ["user-7"]


def test_a_file_keeps_keys_and_one_that_is_none_is_refused(tmp_path):
    _, kept = new_token("one")
    path = tmp_path / "tokens.toml"
    path.write_text(as_toml(kept))
    assert read_tokens(path) == (kept,)
    path.write_text(as_toml(kept).replace(kept.key, "no key"))
    with pytest.raises(BadSettings, match="key of one"):
        read_tokens(path)
