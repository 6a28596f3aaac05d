"""Writes a column file: under another name first, so a reader finds a whole file or none."""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from roost import __version__
from roost.engine.fill.table_columns import Part
from roost.store.column_file.file_layout import ColumnBase, ColumnFileRefused, Header, write_file
from roost.store.column_file.file_place import find_file
from roost.store.column_file.part_codec import Block, encode_parts
from roost.store.column_file.token_rows import Execute, put_token

_SIZE_MAX = 16 * 2**30
_TIME_MAX_S = 1800.0
_TOKEN_BYTES = 16


def write_columns(
    path: Path,
    *,
    load: Callable[[], tuple[ColumnBase, Iterator[Part]]],
    write: Callable[[], AbstractContextManager[Execute]],
    size_max: int = _SIZE_MAX,
) -> bool:
    """Write the column file of a database; return False if another process is writing it.

    Args:
        path: of the file; the folder exists.
        load: reads the database.
        write: begins a transaction on it.
        size_max: maximum size in bytes.

    Raises:
        ColumnFileRefused: the file would be too large, or take too long; the previous one stays.
        OSError: it cannot be written.
        Unavailable: the database cannot be used.
    """
    fresh = path.with_name(path.name + ".new")
    with _lock(fresh) as descriptor:
        if descriptor is None:
            return False
        try:
            base, parts = load()
            header = Header(
                program=__version__, token=secrets.token_hex(_TOKEN_BYTES), base=base, made_at_s=time.time()
            )
            with os.fdopen(os.dup(descriptor), "wb") as file:
                size = write_file(
                    file, header, _until(time.monotonic() + _TIME_MAX_S, encode_parts(parts)), size_max=size_max
                )
                file.flush()
                os.fsync(file.fileno())
            # The order matters: the token must follow the read, and a file without its token is not used.
            with write() as execute:
                put_token(execute, header.token, at_s=header.made_at_s, size=size, previous=_token_of(path))
            fresh.replace(path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise
    _sync_folder(path.parent)
    return True


@contextmanager
def _lock(fresh: Path) -> Iterator[int | None]:
    """Yield the descriptor of an empty file that no other process writes; None: another one writes it."""
    descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        # Another process may have renamed this file before it was locked here: then it is the one in use.
        is_own = _try_lock(descriptor) and _is_at(fresh, descriptor)
        if is_own:
            os.fchmod(descriptor, 0o600)
            os.ftruncate(descriptor, 0)
        yield descriptor if is_own else None
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _until(end_s: float, blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        if time.monotonic() > end_s:
            raise ColumnFileRefused(f"it takes more than {_TIME_MAX_S:.0f} seconds")
        yield block


def _token_of(path: Path) -> str | None:
    found = find_file(path)
    return None if found is None else found.header.token


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
