"""What can be asked: every path with its methods, since when, under which policy, and who answers."""

from collections.abc import Mapping
from dataclasses import dataclass

from roost.api.placement import versions
from roost.api.placement.handlers import providers, root
from roost.api.placement.request import Handler
from roost.api.placement.versions import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path."""

    handler: Handler
    policy: str | None  # None: open to everybody
    since: Version = versions.OLDEST
    # Whether the path is known, but not the method, before ``since``.
    is_method_new: bool = False


# In the order in which the header ``allow`` lists the methods.
_TABLE: dict[str, dict[str, Route]] = {
    "/": {"GET": Route(handler=root.versions_document, policy=None)},
    "/resource_providers": {
        "GET": Route(handler=providers.list_providers, policy="placement:resource_providers:list"),
        "POST": Route(handler=providers.create, policy="placement:resource_providers:create"),
    },
    "/resource_providers/{uuid}": {
        "GET": Route(handler=providers.show, policy="placement:resource_providers:show"),
    },
}


class _Node:
    """One step of a path."""

    __slots__ = ("fixed", "methods", "name", "parameter")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node] = {}
        self.name = ""  # of the parameter that may stand here
        self.parameter: _Node | None = None
        self.methods: Mapping[str, Route] | None = None


def _grown(table: Mapping[str, Mapping[str, Route]]) -> _Node:
    top = _Node()
    for path, methods in table.items():
        node = top
        for step in path.split("/")[1:]:
            if step.startswith("{"):
                node.name = step[1:-1]
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.fixed.setdefault(step, _Node())
        node.methods = methods
    return top


_TOP = _grown(_TABLE)
_PATHS = {id(methods): path for path, methods in _TABLE.items()}


def find(path: str) -> tuple[Mapping[str, Route], dict[str, str]] | None:
    """Return the methods of a path, and the parameters in it; None: there is no such path."""
    node, parameters = _TOP, dict[str, str]()
    for step in (path or "/").split("/")[1:]:
        fixed = node.fixed.get(step)
        if fixed is not None:
            node = fixed
        elif node.parameter is not None and step:
            parameters[node.name] = step
            node = node.parameter
        else:
            return None
    return None if node.methods is None else (node.methods, parameters)


def path_of(methods: Mapping[str, Route]) -> str:
    """Return the path that ``find`` found, with the names of its parameters."""
    return _PATHS[id(methods)]


def table() -> Mapping[str, Mapping[str, Route]]:
    """Return every path with its methods."""
    return _TABLE
