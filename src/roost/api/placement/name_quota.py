"""How many custom resource classes and traits the token of an agent may create.

Names are for all hosts, and the numbers of classes are few. So an agent gets as many as its hosts need, and no more.
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

# A name that is missing so long after the request for it is not coming: the request failed.
_PENDING_S = 120.0
_CREATING: Mapping[tuple[str, str], Kind] = {
    ("POST", "/resource_classes"): "resource_class",
    ("PUT", "/resource_classes/{name}"): "resource_class",
    ("PUT", "/traits/{name}"): "trait",
}
_NOUNS = {"resource_class": "resource classes", "trait": "traits"}


class NameQuota:
    """Remembers the names that agents created in this process.

    Args:
        clock: seconds that only rise.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._created: dict[tuple[frozenset[str], Kind], dict[str, float]] = {}  # name -> how long it may be missing

    def check(self, request: Request, state: State) -> None:
        """Count the name that a request by the token of an agent creates, if it creates one.

        Raises:
            Problem: 403, the token has as many names as it may.
        """
        who = request.identity
        kind = _CREATING.get((request.method, request.route))
        if who is None or not who.hosts or kind is None:
            return
        name = resource_classes.new_name(request) if request.method == "POST" else request.parameters["name"]
        if name in state.symbols(kind) or not _is_custom(kind, name):
            return  # Nothing is created; the handler refuses what cannot be a name.
        created = self._created.setdefault((who.hosts, kind), {})
        now_s = self._clock()
        for each, until_s in list(created.items()):
            if each in state.symbols(kind):
                created[each] = 0.0  # If it is missing later, somebody deleted it.
            elif now_s > until_s:
                del created[each]
        names = created.keys() | _names_in_use(state, who.hosts, kind)
        names_max = request.options.agent_names_max * len(who.hosts)
        if name not in names and len(names) >= names_max:
            raise Problem(
                403,
                f"this token may create {names_max:,} custom {_NOUNS[kind]}; it did, or providers of {who.bounds} use "
                "them (limit placement.agent_names_max, for each host)",
                version_headers="version",
            )
        created[name] = now_s + _PENDING_S


def _is_custom(kind: Kind, name: str) -> bool:
    if kind == "trait":
        return is_trait(name) and name not in standard_traits()
    return is_resource_class(name) and name not in standard_resource_classes()


def _names_in_use(state: State, hosts: frozenset[str], kind: Kind) -> set[str]:
    """Return the custom names that the trees of hosts use."""
    rows = {
        row
        for host_row in state.hosts.rows_named(tuple(hosts)).tolist()
        for row in state.providers.rows_of_tree(state.hosts.provider_row.each[host_row])
    }
    if kind == "trait":
        numbers = {number for row in rows for number in state.traits.labels_of(row)}
    else:
        numbers = {number for number, columns in state.classes.items() if not columns.holders.isdisjoint(rows)}
    return {name for name in map(state.symbols(kind).name_of, numbers) if _is_custom(kind, name)}
