"""Destinations of requests, and cells, for Nova's filters."""

from dataclasses import dataclass, field
from typing import Any

from roost.compat.objects.record import Record
from roost.model.request import Destination as ModelDestination


@dataclass(slots=True, kw_only=True)
class CellMapping(Record):
    """A cell."""

    uuid: str
    name: str = ""

    @classmethod
    def get_by_uuid(cls, context: object, uuid: str) -> "CellMapping":
        """Return a cell."""
        return cls(uuid=uuid, name=uuid)


@dataclass(slots=True, kw_only=True)
class Destination(Record):
    """The required destination of a request."""

    host: str | None = None
    node: str | None = None
    cell: CellMapping | None = None
    aggregates: list[str] | None = None  # uuids separated by commas: one aggregate of each entry is required
    forbidden_aggregates: list[str] = field(default_factory=list)
    allow_cross_cell_move: bool = False


def show_destination(destination: ModelDestination | None) -> Destination | None:
    """Return a destination under Nova's names."""
    if destination is None:
        return None
    return Destination(
        host=destination.host,
        node=destination.node,
        cell=None if destination.cell is None else CellMapping(uuid=destination.cell),
        aggregates=[",".join(sorted(each)) for each in destination.aggregates] or None,
        forbidden_aggregates=sorted(destination.forbidden_aggregates),
        allow_cross_cell_move=destination.allow_cross_cell_move,
    )


def read_destination(shown: Any) -> ModelDestination | None:
    """Convert a destination under Nova's names to Roost's."""
    if shown is None or isinstance(shown, ModelDestination):
        return shown
    cell = getattr(shown, "cell", None)
    return ModelDestination(
        host=shown.host,
        node=shown.node,
        cell=getattr(cell, "uuid", cell),
        aggregates=tuple(frozenset(each.split(",")) for each in shown.aggregates or ()),
        forbidden_aggregates=frozenset(shown.forbidden_aggregates or ()),
        allow_cross_cell_move=bool(shown.allow_cross_cell_move),
    )
