"""Quota of custom resource classes and traits that an agent's token may create.

All hosts share the names, and the database has few ids for classes. So each host of a token adds to its quota.
"""

import time
from collections.abc import Callable, Mapping
from typing import Literal

from roost.api.http import Request
from roost.api.placement.handlers import resource_classes
from roost.api.problems import Problem
from roost.engine.columns.state import State
from roost.model.names import is_resource_class, is_trait, standard_resource_classes, standard_traits

Kind = Literal["resource_class", "trait"]

# Seconds for the creation of a requested name; if the name is still missing then, it no longer counts.
_PENDING_S = 120.0
_CREATING: Mapping[tuple[str, str], Kind] = {
    ("POST", "/resource_classes"): "resource_class",
    ("PUT", "/resource_classes/{name}"): "resource_class",
    ("PUT", "/traits/{name}"): "trait",
}
_NOUNS = {"resource_class": "resource classes", "trait": "traits"}


class NameQuota:
    """The names that agents created through this process.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._created: dict[
            tuple[frozenset[str], Kind], dict[str, float]
        ] = {}  # name -> time until which it may be missing

    def check(self, request: Request, state: State) -> None:
        """Count the name that a request with an agent's token creates, if any.

        Raises:
            Problem: 403, the quota is used up.
        """
        identity = request.identity
        kind = _CREATING.get((request.method, request.route))
        if identity is None or not identity.hosts or kind is None:
            return
        name = resource_classes.new_name(request) if request.method == "POST" else request.parameters["name"]
        if name in state.name_table(kind) or not _is_custom(kind, name):
            return  # Nothing is created; the handler refuses invalid names.
        created = self._created.setdefault((identity.hosts, kind), {})
        now_s = self._clock()
        for each, until_s in list(created.items()):
            if each in state.name_table(kind):
                created[each] = 0.0  # If it is missing later, it was deleted.
            elif now_s > until_s:
                del created[each]
        names = created.keys() | _names_in_use(state, identity.hosts, kind)
        names_max = request.options.agent_names_max * len(identity.hosts)
        if name not in names and len(names) >= names_max:
            raise Problem(
                403,
                f"this token may create {names_max:,} custom {_NOUNS[kind]}, including those that providers of "
                f"{identity.bounds} use; there are as many already (limit placement.agent_names_max, for each host)",
                version_headers="version",
            )
        created[name] = now_s + _PENDING_S


def _is_custom(kind: Kind, name: str) -> bool:
    if kind == "trait":
        return is_trait(name) and name not in standard_traits()
    return is_resource_class(name) and name not in standard_resource_classes()


def _names_in_use(state: State, hosts: frozenset[str], kind: Kind) -> set[str]:
    """Return the custom names in the trees of hosts."""
    rows = {
        row
        for host_row in state.hosts.find_rows(tuple(hosts)).tolist()
        for row in state.providers.rows_of_tree(state.hosts.provider_row.each[host_row])
    }
    if kind == "trait":
        numbers = {number for row in rows for number in state.traits.labels_of(row)}
    else:
        numbers = {number for number, columns in state.classes.items() if any(row in columns.holders for row in rows)}
    return {name for name in map(state.name_table(kind).name_of, numbers) if _is_custom(kind, name)}
