"""Who asks: everybody as they say (noauth2), or whoever holds a token of a file."""

import hashlib
import hmac
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from roost.api.http import Identity
from roost.errors import BadRequest, BadSettings
from roost.model.names import is_text

Headers = Mapping[str, str]
_SALT_BYTES = 16
_SECRET_BYTES = 32
_ID_LETTERS = 8
_HOST_MAX = 255
AGENT = "agent"  # the role
_HASH = re.compile(rf"[0-9a-f]{{{2 * _SALT_BYTES}}}:[0-9a-f]{{64}}")
_KEY_BYTES = 8
_KEY = re.compile(rf"[0-9a-f]{{{2 * _KEY_BYTES}}}")
_ROLE = re.compile(r"[^\s,]+")


def trust_headers(headers: Headers) -> Identity | None:
    """Return whoever the headers say asks, as noauth2 does: ``x-auth-token`` is USER or USER:PROJECT."""
    token = headers.get("x-auth-token")
    if not token:
        return None
    user, colon, project = token.partition(":")
    roles = headers.get("x-roles")
    if roles is None:
        roles = "admin" if user == "admin" else ""
    return Identity(
        user_id=user,
        project_id=headers.get("x-project-id") or (project if colon else user),
        roles=parse_roles(roles),
        is_system_scoped=bool(headers.get("openstack-system-scope")),
    )


def parse_roles(text: str) -> frozenset[str]:
    """Return the roles of a list with commas, in lower case: rules do not mind the case."""
    return frozenset(role.strip().lower() for role in text.split(",") if role.strip())


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who holds a token, and what it hashes to.

    Tokens are made by ``new_token``: nobody guesses one, so a quick hash keeps it, and asking costs little.
    """

    name: str  # the user that requests are of
    sha256: str  # salt and hash of both, in hexadecimal, with a colon between them
    project: str = ""  # empty: the name
    roles: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()  # the only ones it may touch; empty: it is bound to none
    key: str = ""  # the text of the token begins with it and a dot, and it is found by it; empty: of an older one

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name must not be empty")
        if self.key and not _KEY.fullmatch(self.key):
            raise ValueError(f"key of {self.name} is not one that `roost token create` makes")
        if not _HASH.fullmatch(self.sha256):
            raise ValueError(f"sha256 of {self.name} is not one that `roost token create` makes")
        if self.hosts and set(self.roles) != {AGENT}:
            raise ValueError(f"a token for hosts has the role {AGENT} and no other, which {self.name} has not")
        if not all(is_text(host, length_max=_HOST_MAX) and host.strip() for host in self.hosts):
            raise ValueError(f"a host of {self.name} has no name")

    def matches(self, text: bytes) -> bool:
        """Say whether this is the token of a text, in a time that does not tell how nearly."""
        salt, _, wanted = self.sha256.partition(":")
        return hmac.compare_digest(_hash(text, bytes.fromhex(salt)), wanted)

    @property
    def id(self) -> str:
        """What tells it from others of the same name, and is no secret."""
        return self.sha256[:_ID_LETTERS]

    @property
    def identity(self) -> Identity:
        """Who holds it."""
        roles = frozenset(role.lower() for role in self.roles)
        return Identity(
            user_id=self.name, project_id=self.project or self.name, roles=roles, hosts=_fold_case(self.hosts)
        )


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of tokens."""

    token: tuple[Token, ...] = ()


class Tokens:
    """Tokens of a file, none of which it holds: only what they hash to.

    Args:
        tokens: those that are accepted.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        # By their keys, so that a request costs the same however many there are; older ones have none.
        self._tokens_by_key: dict[str, list[tuple[Token, Identity]]] = {}
        for token in tokens:
            self._tokens_by_key.setdefault(token.key, []).append((token, token.identity))

    def identify(self, headers: Headers) -> Identity | None:
        """Return whoever holds the token in ``x-auth-token``, if it is one of ours."""
        given = headers.get("x-auth-token", "")
        key, dot, _ = given.partition(".")
        known = self._tokens_by_key.get(key if dot else "", [])
        text = given.encode("latin-1", "replace")
        # All of one key are compared, so that the time says nothing about which one it is.
        found = [identity for token, identity in known if token.matches(text)]
        return found[0] if found else None


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read what a file of tokens holds.

    Raises:
        BadSettings: it cannot be read, or is not as ``roost token create`` writes it.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(document, _File).token
    except OSError as error:
        raise BadSettings(str(path), f"cannot be read: {error.strerror or error}") from None
    except msgspec.ValidationError as error:
        raise BadSettings(str(path), f"is no file of tokens: {error}") from None
    except (ValueError, RecursionError) as error:
        raise BadSettings(str(path), f"is no TOML: {error}") from None


def new_token(
    name: str, *, project: str = "", roles: Sequence[str] = (), hosts: Sequence[str] = ()
) -> tuple[str, Token]:
    """Make a token that nobody guesses; return its text, which is kept nowhere, and what a file holds of it.

    Args:
        hosts: the only ones that it may touch, which makes it an agent's; empty: it is bound to none.

    Raises:
        BadRequest: the name is empty, a role is no word, or one of a host is not an agent's.
    """
    if not name:
        raise BadRequest("a token needs the name of its user")
    for role in roles:
        if not _ROLE.fullmatch(role):
            raise BadRequest(f"a role is one word without commas, got {role!r}")
    key, salt = secrets.token_hex(_KEY_BYTES), secrets.token_bytes(_SALT_BYTES)
    text = f"{key}.{secrets.token_urlsafe(_SECRET_BYTES)}"
    kept = f"{salt.hex()}:{_hash(text.encode(), salt)}"
    given = tuple(roles) or ((AGENT,) if hosts else ())
    try:
        return text, Token(name=name, sha256=kept, project=project, roles=given, hosts=tuple(hosts), key=key)
    except ValueError as error:
        raise BadRequest(str(error)) from None


def as_toml(token: Token) -> str:
    """Return an entry of a file of tokens."""
    lines = ["[[token]]", f"name = {_quote(token.name)}"]
    if token.project:
        lines.append(f"project = {_quote(token.project)}")
    lines.append(f"roles = [{', '.join(map(_quote, token.roles))}]")
    if token.hosts:
        lines.append(f"hosts = [{', '.join(map(_quote, token.hosts))}]")
    if token.key:
        lines.append(f'key = "{token.key}"')
    lines.append(f'sha256 = "{token.sha256}"')
    return "\n".join(lines) + "\n"


def _fold_case(hosts: Sequence[str]) -> frozenset[str]:
    # Two hosts never differ by case only.
    return frozenset(host.lower() for host in hosts)


def _hash(text: bytes, salt: bytes) -> str:
    return hashlib.sha256(salt + text).hexdigest()


def _quote(text: str) -> str:
    # A JSON string is one of TOML too, except that TOML wants this one control character spelt out.
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
