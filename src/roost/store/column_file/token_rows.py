"""The tokens of column files, in the table ``upkeep`` of their database.

A token is random, and written after the content of its file was read. So a database with the token has all changes in
the file, even after a failover, or after a restore of the files of the database.
"""

from collections.abc import Callable
from typing import Any

from roost.store.rules.schema import UPKEEP

# Executes a statement with ``?`` for each of its values, and returns its rows.
Execute = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]

_PREFIX = "column file "
# Files of one database: one for each machine. Those of machines that no longer exist go first.
_TOKENS_MAX = 64
_NEWEST_FIRST = "SELECT name FROM upkeep WHERE name LIKE ? ORDER BY at_s DESC"
_DELETE = "DELETE FROM upkeep WHERE name = ?"
_INSERT = f"INSERT INTO upkeep ({', '.join(UPKEEP.columns)}) VALUES (?, ?, 0, ?)"  # noqa: S608  # our names


def find_token(token: str) -> str:
    """Return the query for a token: one row if the database has it.

    Args:
        token: hexadecimal digits.
    """
    return f"SELECT 1 FROM upkeep WHERE name = '{_PREFIX}{int(token, 16):032x}'"  # noqa: S608  # digits


def put_token(execute: Execute, token: str, *, at_s: float, size: int, previous: str | None) -> None:
    """Insert the token of a file.

    Args:
        execute: in a transaction.
        at_s: time in seconds since the epoch.
        size: of the file in bytes.
        previous: the token of the file that it replaces; None: there is none.
    """
    execute(_INSERT, (_PREFIX + token, at_s, size))
    names = [name for (name,) in execute(_NEWEST_FIRST, (_PREFIX + "%",))]
    for at, name in enumerate(names):
        if at >= _TOKENS_MAX or name == f"{_PREFIX}{previous}":
            execute(_DELETE, (name,))
