"""The token of an agent, read again from its file after the server refuses it."""

from collections.abc import Callable
from threading import Lock

from roost.client.wire import is_header_text
from roost.errors import RoostError
from roost.observe import log

HEADER = "x-auth-token"
# Pause between two tries with a refused token, in seconds, and the sum of the pauses after which the agent ends.
RETRY_S, WAIT_MAX_S = 5.0, 300.0


class AgentToken:
    """The token of all agents of a process. Threads share it.

    Args:
        text: the token; None: none.
        read: reads the token from its file, or raises a ``RoostError``; None: the token
            cannot change.
    """

    def __init__(self, text: str | None, *, read: Callable[[], str] | None = None) -> None:
        self._text, self._read = text or "", read
        self._lock = Lock()

    @property
    def text(self) -> str:
        """The token for the next request; empty: none."""
        return self._text

    @property
    def headers(self) -> dict[str, str]:
        """The header with the token."""
        return {HEADER: self._text} if self._text else {}

    @property
    def can_change(self) -> bool:
        """Whether the token comes from a file that can change."""
        return self._read is not None

    def replace(self, refused: str) -> bool:
        """Replace a refused token by that of the file; return whether another token is in use now.

        An unreadable file, as in the middle of a rotation, leaves the token in use.
        """
        with self._lock:
            if self._text != refused:
                return True  # Another thread was faster.
            if self._read is None:
                return False
            try:
                text = self._read()
            except RoostError as error:
                log.event("credentials_unreadable", problem=str(error))
                return False
            if text == refused or not is_header_text(text):
                return False
            self._text = text
            log.event("credentials_read")
            return True
