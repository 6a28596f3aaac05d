"""The program that writes a snapshot, or a column file.

It reads the URL of a database from its standard input, not from its arguments. The URL may contain a password, and
other users can see the arguments.
"""

import os
import sys
from pathlib import Path

import msgspec

from roost.errors import RoostError
from roost.store.backends import database_at
from roost.store.column_file.file_layout import ColumnFileRefused
from roost.store.snapshots import SnapshotOrder

_NICENESS = 10


def write_snapshot(url: str) -> bool:
    """Write a snapshot of a database; see ``Database.write_snapshot``."""
    return database_at(url).write_snapshot()


def write_column_file(url: str, path: Path) -> bool:
    """Write the column file of a database; see ``Database.write_column_file``."""
    return database_at(url).write_column_file(path)


def main() -> None:
    """Carry out the order in the standard input."""
    os.nice(_NICENESS)
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=SnapshotOrder)
    if not order.column_file:
        write_snapshot(order.url)
        return
    try:
        write_column_file(order.url, Path(order.column_file))
    except (ColumnFileRefused, OSError, RoostError) as error:
        sys.exit(str(error))  # The serving process logs this line.


if __name__ == "__main__":
    main()
