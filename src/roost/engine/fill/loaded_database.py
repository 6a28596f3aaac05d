"""The content of a database, as a store reads it."""

from collections.abc import Iterator

import msgspec

from roost.engine.fill.row_writes import writes_of
from roost.engine.fill.table_columns import Part
from roost.model.writes import Write


class LoadedDatabase(msgspec.Struct, frozen=True):
    """The content of a database at one moment."""

    position: int  # of the newest change in the content
    parts: Iterator[Part]  # in a valid order of application; read it to its end, once

    @property
    def writes(self) -> Iterator[Write]:
        """The content of ``parts`` as one write for each row; read one of both."""
        return writes_of(self.parts)
