"""The content of a database, as a store reads it."""

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from roost.engine.fill.row_writes import writes_of
from roost.engine.fill.table_columns import Part
from roost.model.writes import Write


class LoadedDatabase(msgspec.Struct, frozen=True):
    """The content of a database at one moment."""

    position: int  # of the newest change in the content
    parts: Iterator[Part]  # in a valid order of application; read it to its end, once
    later: Iterable[Write] = ()  # to be applied after the parts, one by one
    is_cached: bool = False  # whether the parts are from a column file: after any error, load from the rows

    @property
    def writes(self) -> Iterator[Write]:
        """The content as one write for each row, and then ``later``; read this or the parts."""
        return chain(writes_of(self.parts), self.later)
