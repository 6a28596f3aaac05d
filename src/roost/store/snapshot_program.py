"""The program that writes a snapshot.

It reads the URL of a database from its standard input, not from its arguments. The URL may contain a password, and
other users can see the arguments.
"""

import os
import sys

from roost.store.backends import database_at

_NICENESS = 10


def write_snapshot(url: str) -> bool:
    """Write a snapshot of a database; see ``Database.write_snapshot``."""
    return database_at(url).write_snapshot()


if __name__ == "__main__":
    os.nice(_NICENESS)
    write_snapshot(sys.stdin.read())
