"""Authorization by policy."""

from collections.abc import Callable, Mapping

from roost.api.http import Identity
from roost.api.problems import Problem

Allows = Callable[[str, Identity, Mapping[str, str]], bool]  # policy, identity, target

_NO_ROLE = "your token has no role; with auth_strategy noauth2, only the token admin has one"


def is_allowed(allows: Allows, policy: str, identity: Identity) -> bool:
    """Return whether a policy allows a client to act on its own project."""
    return allows(policy, identity, {"project_id": identity.project_id, "user_id": identity.user_id})


def check(allows: Allows, policy: str, identity: Identity) -> None:
    """Refuse a call that a policy does not allow.

    Raises:
        Problem: 403.
    """
    if not is_allowed(allows, policy, identity):
        roles = ", ".join(sorted(identity.roles))
        text = f"your roles: {roles}" if roles else _NO_ROLE
        raise Problem(403, f"policy {policy} does not allow this; {text}")
