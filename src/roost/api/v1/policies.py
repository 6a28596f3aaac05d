"""Policies of Roost's own API: one per operation, with its default.

The name of a policy follows from method and path: ``GET /hosts/{host}`` is ``roost:hosts:show``. A policy file replaces
defaults, as for the Placement API.
"""

import re
from collections.abc import Mapping

# Allows a client to see instances, decisions, groups and operations of all projects, not only of its own project.
ALL_PROJECTS = "roost:all_projects"
FORCE_DELETE = "roost:instances:delete:force"
SNAPSHOT_POLICY = "roost:fleet:columns"
REVERT_LOST = "roost:instances:revert:lost"

# Nested sets of roles, each a subset of the next one. The smallest sets are rules of the Placement API, and the largest
# one has every authenticated client.
_ROLE_SETS: Mapping[str, str] = {
    "agent_api": "rule:admin_or_service_api or role:agent",
    "observer_api": "rule:agent_api or role:observer or (role:reader and system_scope:all)",
    "reader_api": "rule:observer_api or role:reader",
    "client_api": "@",
}
_POLICIES: Mapping[str, str] = {
    "admin_api": "instances:reset instances:delete:force instances:revert:lost",
    "admin_or_service_api": """
        decisions:create groups:create groups:delete hosts:drain operations:delete operations:pause operations:resume
        plans:apply plans:balance plans:consolidate plans:drain plans:make-room services:update
        aggregates:create aggregates:update aggregates:delete aggregates:hosts:update aggregates:hosts:delete
        aggregates:ratios settings:show
        flavors:update flavors:delete images:update images:delete
        instances:create instances:start instances:stop instances:resize instances:migrate instances:confirm
        instances:revert instances:rebuild instances:shelve instances:offload instances:unshelve instances:reboot
        instances:live-migrate instances:evacuate
    """,
    "agent_api": """
        agents:update agents:delete agents:nodes:update agents:standings orders:poll orders:answer
        instances:delete decisions:next
    """,
    "observer_api": """
        all_projects agents:list agents:show aggregates:list aggregates:show audit:show capacity:show
        comparisons:create events:list explanations:create fleet:columns fleet:names fleet:show history:show hosts:list
        hosts:show hosts:providers hosts:events migrations:list migrations:show refusals:list services:list status:show
        zones:list
    """,
    "reader_api": """
        changes:list decisions:list decisions:show decisions:why decisions:replay groups:list groups:show instances:list
        instances:show operations:list operations:show flavors:list flavors:show images:list images:show
    """,
    "client_api": "session:create session:show",
}
DEFAULTS: Mapping[str, str] = {
    **_ROLE_SETS,
    **{f"roost:{name}": f"rule:{role_set}" for role_set, names in _POLICIES.items() for name in names.split()},
}

_OF_MANY = {"GET": "list", "POST": "create"}
_OF_ONE = {"GET": "show", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
_PARAMETER = re.compile(r"\{\w+\}")
# A batch has the policy of its requests. All requests for capacity have one policy: they are the same question, with
# answers of other forms. The results of fleet, audit, status, history, session and settings are not lists.
_SPECIAL = {
    ("POST", "/decisions/batch"): "roost:decisions:create",
    ("GET", "/capacity"): "roost:capacity:show",
    ("POST", "/capacity"): "roost:capacity:show",
    ("GET", "/capacity/columns"): "roost:capacity:show",
    ("POST", "/capacity/columns"): "roost:capacity:show",
    ("GET", "/fleet"): "roost:fleet:show",
    ("GET", "/audit"): "roost:audit:show",
    ("GET", "/status"): "roost:status:show",
    ("GET", "/history"): "roost:history:show",
    ("GET", "/session"): "roost:session:show",
    ("GET", "/settings"): "roost:settings:show",
}


def policy_of(method: str, path: str) -> str:
    """Return the name of the policy of an operation.

    Args:
        path: as in the table of routes, with its parameters in braces.
    """
    if (method, path) in _SPECIAL:
        return _SPECIAL[method, path]
    parts = path.strip("/").split("/")
    words = [part for part in parts if not _PARAMETER.fullmatch(part)]
    if _PARAMETER.fullmatch(parts[-1]):
        words.append(_OF_ONE[method])
    elif len(parts) == 1:
        words.append(_OF_MANY[method])
    return ":".join(["roost", *words])
