"""The file of tokens while the server runs: what is written into it, or taken out of it, holds soon."""

import time
from collections.abc import Callable
from pathlib import Path

from roost.api.access.authentication import Headers, Tokens, read_tokens
from roost.api.http import Identity
from roost.errors import BadSettings
from roost.observe import log

_CHECK_INTERVAL_S = 1.0


class TokenFile:
    """Tokens of a file that is read again when it has changed; one that makes no sense changes nothing.

    Args:
        path: of the file.
        clock: seconds that never go back.

    Raises:
        BadSettings: it cannot be read, or is not as ``roost token create`` writes it.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._checked_s = clock()
        self._stamp = self._read_stamp()  # Before it is read: what is written meanwhile is another mark.
        self._tokens = Tokens(read_tokens(path))

    def identify(self, headers: Headers) -> Identity | None:
        """Return whoever holds the token in ``x-auth-token``, if it is one of the file."""
        now_s = self._clock()
        if now_s - self._checked_s >= _CHECK_INTERVAL_S:
            self._checked_s = now_s
            self._refresh()
        return self._tokens.identify(headers)

    def _read_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _refresh(self) -> None:
        mark = self._read_stamp()
        if mark == self._stamp:
            return
        self._stamp = mark
        try:
            self._tokens = Tokens(read_tokens(self._path))
        except BadSettings as error:
            log.event("tokens_kept", problem=str(error))
        else:
            log.event("tokens_read")
