"""The program that writes a snapshot.

It reads the URL of a database from its standard input, since the URL may hold a password.
"""

import os
import sys
from pathlib import Path

from roost.store import backends

_NICENESS = 10


def write_snapshot(url: str) -> bool:
    """Write a snapshot of a database, in this process; say whether there was anything to write, and nobody at it.

    Raises:
        Unavailable: the database cannot be used.
    """
    if backends.is_postgresql(url):
        with backends.needs_extra():
            from roost.store.postgresql import history as postgresql_history
        return postgresql_history.write_snapshot(url)
    from roost.store.sqlite import history as sqlite_history

    return sqlite_history.write_snapshot(Path(backends.sqlite_path(url)))


if __name__ == "__main__":
    os.nice(_NICENESS)
    write_snapshot(sys.stdin.read())
