"""The path of a column file, and its private permissions."""

import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import parse_qs, urlsplit

from roost.model.settings.roost_settings import Store as Settings
from roost.store.column_file.file_layout import ColumnFile, ColumnFileRefused, Header

_SUFFIX = ".columns"
# Parts of a query in a URL that name the database; others may be secret.
_NAMES = ("host", "port", "dbname", "user")


def place_beside(path: Path, settings: Settings) -> Path | None:
    """Return the path of the column file of a SQLite file; None: the settings want none."""
    if not settings.column_file:
        return None
    folder = Path(settings.column_folder).absolute() if settings.column_folder else path.absolute().parent
    return folder / (path.name + _SUFFIX)


def place_in_folder(url: str, settings: Settings) -> Path | None:
    """Return the path of the column file of a database on a server; None: the settings want none."""
    if not (settings.column_file and settings.column_folder):
        return None
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    names = [parts.netloc.rpartition("@")[2], parts.path, *(repr(query.get(name)) for name in _NAMES)]
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=8).hexdigest()
    return Path(settings.column_folder).absolute() / f"roost-{digest}{_SUFFIX}"


def open_private(path: Path) -> BinaryIO | None:
    """Open a file of this user that no other user can read or change; None: it does not exist.

    Raises:
        ColumnFileRefused: it is another kind of file, or cannot be read.
    """
    try:
        # Without the last flag, opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ColumnFileRefused(f"it cannot be opened: {error.strerror}") from None
    problem = _find_problem(os.fstat(descriptor))
    if problem:
        os.close(descriptor)
        raise ColumnFileRefused(problem)
    return os.fdopen(descriptor, "rb")


def _find_problem(found: os.stat_result) -> str:
    if not stat.S_ISREG(found.st_mode):
        return "it is not a file"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "other users have access to it" if found.st_mode & 0o077 else ""


class FoundFile(NamedTuple):
    """A column file with a valid header."""

    header: Header
    size: int  # bytes
    took_s: float  # to write it


def find_file(path: Path) -> FoundFile | None:
    """Return a column file; None: it is absent or unusable."""
    try:
        file = open_private(path)
        if file is None:
            return None
        with file:
            found = ColumnFile(file)
            took_s = os.fstat(file.fileno()).st_mtime - found.header.made_at_s
            return FoundFile(found.header, found.size, took_s)
    except (ColumnFileRefused, OSError):
        return None
