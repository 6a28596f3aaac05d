"""Lookup of routes by path, step by step, with parameters."""

from collections.abc import Mapping
from typing import Generic, TypeVar

Route = TypeVar("Route")
Methods = Mapping[str, Route]


class _Node(Generic[Route]):
    """One step of a path."""

    __slots__ = ("fixed", "methods", "name", "parameter")

    def __init__(self) -> None:
        self.fixed: dict[str, _Node[Route]] = {}
        self.name = ""  # of the parameter at this step
        self.parameter: _Node[Route] | None = None
        self.methods: Methods[Route] | None = None


class Paths(Generic[Route]):
    """The paths of an API.

    Args:
        table: methods by path; a step in braces is a parameter.
    """

    def __init__(self, table: Mapping[str, Methods[Route]]) -> None:
        self._top: _Node[Route] = _Node()
        self._paths = {id(methods): path for path, methods in table.items()}
        for path, methods in table.items():
            node = self._top
            for step in path.split("/")[1:]:
                if step.startswith("{"):
                    node.name = step[1:-1]
                    node.parameter = node.parameter or _Node()
                    node = node.parameter
                else:
                    node = node.fixed.setdefault(step, _Node())
            node.methods = methods

    def find(self, path: str) -> tuple[Methods[Route], dict[str, str]] | None:
        """Return the methods and parameters of a path; None: unknown path."""
        node, parameters = self._top, dict[str, str]()
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

    def path_of(self, methods: Methods[Route]) -> str:
        """Return the path of methods that ``find`` returned, with the names of its parameters."""
        return self._paths[id(methods)]
