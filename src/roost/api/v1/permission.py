"""Authorization by policy."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from roost.api.http import Identity
from roost.api.problems import Problem

Allows = Callable[[str, Identity, Mapping[str, str]], bool]  # policy, identity, target

# The roles of the default policies, those with the fewest rights first.
_ROLES = ("reader", "observer", "agent", "service", "admin")
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
        needed = find_roles(allows, policy, identity)
        choice = " or ".join(filter(None, (", ".join(needed[:-1]), *needed[-1:])))
        advice = f"; it needs the role {choice}" if needed else ""
        raise Problem(
            403, f"policy {policy} does not allow this; {text}{advice}", more={"needed_roles": ",".join(needed)}
        )


def find_roles(allows: Allows, policy: str, identity: Identity) -> list[str]:
    """Return the roles of the default policies, each of which alone would allow a call of a client.

    A policy file may name further roles. Roles of the list that the client has already are not enough for it.
    """
    others = [role for role in _ROLES if role not in identity.roles]
    return [role for role in others if is_allowed(allows, policy, replace(identity, roles=frozenset({role})))]
