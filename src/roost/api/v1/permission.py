"""Whether somebody may do what a policy names."""

from collections.abc import Callable, Mapping

from roost.api.http import Identity
from roost.api.problems import Problem

Allows = Callable[[str, Identity, Mapping[str, str]], bool]  # policy, who, what is acted on


def is_allowed(allows: Allows, policy: str, who: Identity) -> bool:
    """Say whether somebody may do what a policy names; what is acted on is of the own project."""
    return allows(policy, who, {"project_id": who.project_id, "user_id": who.user_id})


def check(allows: Allows, policy: str, who: Identity) -> None:
    """Refuse what a policy does not allow.

    Raises:
        Problem: 403.
    """
    if not is_allowed(allows, policy, who):
        roles = ", ".join(sorted(who.roles)) or "none"
        raise Problem(403, f"policy {policy} does not allow this; your roles: {roles}")
