"""The file of tokens of a running server: its changes take effect soon."""

import time
from collections.abc import Callable
from pathlib import Path

from roost.api.access.authentication import Headers, Tokens, read_tokens
from roost.api.http import Identity
from roost.errors import BadSettings
from roost.observe import log

_CHECK_INTERVAL_S = 1.0  # between two checks of the file


class TokenFile:
    """Tokens of a file, read again after each change; an invalid file leaves the earlier tokens valid.

    Args:
        path: of the file.
        clock: monotonic seconds.

    Raises:
        BadSettings: the file is unreadable or invalid.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._checked_s = clock()
        self._stamp = self._read_stamp()  # Before reading, so that a later write changes the stamp.
        self._tokens = Tokens(read_tokens(path))

    def identify(self, headers: Headers) -> Identity | None:
        """Return the identity of the token in ``x-auth-token``; None: unknown token."""
        now_s = self._clock()
        if now_s - self._checked_s >= _CHECK_INTERVAL_S:
            self._checked_s = now_s
            self._refresh()
        return self._tokens.identify(headers)

    def _read_stamp(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _refresh(self) -> None:
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._tokens = Tokens(read_tokens(self._path))
        except BadSettings as error:
            log.event("tokens_kept", problem=str(error))
        else:
            log.event("tokens_read")
