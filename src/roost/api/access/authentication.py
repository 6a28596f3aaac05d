"""Authentication without Keystone: trusted headers (noauth2), or tokens of a file."""

import hashlib
import hmac
import re
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from roost.api.http import Identity
from roost.errors import BadRequest, BadSettings, unreadable_settings
from roost.model.names import is_text

Headers = Mapping[str, str]
_SALT_BYTES = 16
_SECRET_BYTES = 32
_ID_LETTERS = 8
_HOST_MAX = 255
AGENT = "agent"  # name of the role
_HASH = re.compile(rf"[0-9a-f]{{{2 * _SALT_BYTES}}}:[0-9a-f]{{64}}")
_KEY_BYTES = 8
_KEY = re.compile(rf"[0-9a-f]{{{2 * _KEY_BYTES}}}")
_ROLE = re.compile(r"[^\s,]+")


def trust_headers(headers: Headers) -> Identity | None:
    """Return the identity in the headers, as noauth2 does: ``x-auth-token`` is USER or USER:PROJECT."""
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
    """Return the roles of a comma-separated list, in lower case: rules ignore case."""
    return frozenset(role.strip().lower() for role in text.split(",") if role.strip())


class Token(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored token: its holder and a hash.

    ``new_token`` makes tokens of high entropy, so a fast hash is safe.
    """

    name: str  # user of its requests
    sha256: str  # SALT:HASH in hexadecimal; the hash covers salt and text
    project: str = ""  # empty: the same as the name
    roles: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()  # the only hosts that an agent's token may touch; empty: no limit
    key: str = ""  # the token's text before its first dot, for the lookup; empty: an old token
    created: datetime | None = None  # None: an older version of Roost made the token

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("name must not be empty")
        if self.key and not _KEY.fullmatch(self.key):
            raise ValueError(f"key of {self.name} is invalid; create tokens with `roost token create`")
        if not _HASH.fullmatch(self.sha256):
            raise ValueError(f"sha256 of {self.name} is invalid; create tokens with `roost token create`")
        if self.hosts and set(self.roles) != {AGENT}:
            raise ValueError(f"a token with hosts must have the role {AGENT} alone, but {self.name} has other roles")
        if not all(is_text(host, length_max=_HOST_MAX) and host.strip() for host in self.hosts):
            raise ValueError(f"a host of {self.name} has no name")

    def matches(self, text: bytes) -> bool:
        """Return whether a text is this token, in constant time."""
        salt, _, digest = self.sha256.partition(":")
        return hmac.compare_digest(_hash(text, bytes.fromhex(salt)), digest)

    @property
    def id(self) -> str:
        """A public id, to distinguish tokens of one name."""
        return self.sha256[:_ID_LETTERS]

    @property
    def creation_s(self) -> int | None:
        """The time of its creation, in seconds since the epoch; a time without an offset is in UTC."""
        if self.created is None:
            return None
        created = self.created if self.created.tzinfo else self.created.replace(tzinfo=UTC)
        return int(created.timestamp())

    @property
    def identity(self) -> Identity:
        """The identity of the holder."""
        roles = frozenset(role.lower() for role in self.roles)
        return Identity(
            user_id=self.name, project_id=self.project or self.name, roles=roles, hosts=_fold_case(self.hosts)
        )


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of tokens."""

    token: tuple[Token, ...] = ()


class Tokens:
    """Tokens of a file, as hashes only.

    Args:
        tokens: accepted tokens.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        # By key, so that the time of a request does not depend on the number of tokens; old tokens have no key.
        self._tokens_by_key: dict[str, list[tuple[Token, Identity]]] = {}
        for token in tokens:
            self._tokens_by_key.setdefault(token.key, []).append((token, token.identity))

    def identify(self, headers: Headers) -> Identity | None:
        """Return the identity of the token in ``x-auth-token``; None: unknown token."""
        header = headers.get("x-auth-token", "")
        key, dot, _ = header.partition(".")
        candidates = self._tokens_by_key.get(key if dot else "", [])
        text = header.encode("latin-1", "replace")
        # All tokens of the key are compared, so that the time does not reveal the match.
        matches = [identity for token, identity in candidates if token.matches(text)]
        return matches[0] if matches else None


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens.

    Raises:
        BadSettings: the file is unreadable or invalid.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(document, _File).token
    except OSError as error:
        raise unreadable_settings(str(path), error) from None
    except msgspec.ValidationError as error:
        raise BadSettings(str(path), f"is not a file of tokens: {error}") from None
    except (ValueError, RecursionError) as error:
        raise BadSettings(str(path), f"is not valid TOML: {error}") from None


def new_token(
    name: str,
    *,
    project: str = "",
    roles: Sequence[str] = (),
    hosts: Sequence[str] = (),
    created_at_s: float | None = None,
) -> tuple[str, Token]:
    """Make a random token; return its text, which is not stored, and its entry for a file.

    Args:
        hosts: the only hosts that an agent's token may touch; empty: no limit.
        created_at_s: the present time, in seconds since the epoch; None: the entry has no time.

    Raises:
        BadRequest: the name is empty, a role is not one word, or a token with hosts has a role other than agent.
    """
    if not name:
        raise BadRequest("a token needs the name of its user")
    for role in roles:
        if not _ROLE.fullmatch(role):
            raise BadRequest(f"a role is one word without commas, got {role!r}")
    key, salt = secrets.token_hex(_KEY_BYTES), secrets.token_bytes(_SALT_BYTES)
    text = f"{key}.{secrets.token_urlsafe(_SECRET_BYTES)}"
    digest = f"{salt.hex()}:{_hash(text.encode(), salt)}"
    all_roles = tuple(roles) or ((AGENT,) if hosts else ())
    created = None if created_at_s is None else datetime.fromtimestamp(int(created_at_s), UTC)
    try:
        return text, Token(
            name=name, sha256=digest, project=project, roles=all_roles, hosts=tuple(hosts), key=key, created=created
        )
    except ValueError as error:
        raise BadRequest(str(error)) from None


def as_toml(token: Token) -> str:
    """Return a token as an entry of a file."""
    lines = ["[[token]]", f"name = {_quote(token.name)}"]
    if token.project:
        lines.append(f"project = {_quote(token.project)}")
    lines.append(f"roles = [{', '.join(map(_quote, token.roles))}]")
    if token.hosts:
        lines.append(f"hosts = [{', '.join(map(_quote, token.hosts))}]")
    if token.key:
        lines.append(f'key = "{token.key}"')
    if token.created is not None:
        lines.append(f"created = {token.created.isoformat()}")
    lines.append(f'sha256 = "{token.sha256}"')
    return "\n".join(lines) + "\n"


def _fold_case(hosts: Sequence[str]) -> frozenset[str]:
    # Names of hosts are unique regardless of case.
    return frozenset(host.lower() for host in hosts)


def _hash(text: bytes, salt: bytes) -> str:
    return hashlib.sha256(salt + text).hexdigest()


def _quote(text: str) -> str:
    # A JSON string is valid TOML, except that TOML requires an escape for DEL.
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
