"""Files with tokens: edited by one command at a time, and replaced in one step."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from roost.errors import RoostError


@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Lock the folder of a file against other commands that edit it.

    Raises:
        RoostError: the folder does not exist, or a file in it cannot be written.
    """
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)
    except OSError as error:
        raise RoostError(f"{path} cannot be written: {error.strerror or error}") from None


def replace_file(path: Path, text: str) -> None:
    """Write a file in one step. It keeps its mode and owner; only the owner may read a new file.

    A symbolic link stays. An error leaves the old file.
    """
    path = Path(os.path.realpath(path))
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            with suppress(FileNotFoundError):
                status = path.stat()
                os.fchmod(file.fileno(), status.st_mode & 0o777)
                if os.geteuid() == 0:
                    os.fchown(file.fileno(), status.st_uid, status.st_gid)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
