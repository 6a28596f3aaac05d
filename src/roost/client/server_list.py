"""The servers of an agent: it uses one at a time, and the next when that one does not answer."""

from collections.abc import Sequence
from threading import Lock

from roost.errors import BadSettings

SERVERS_MAX = 16  # URLs of one agent


class ServerList:
    """The URLs of the servers on one database, in the order of their use. Threads share it.

    Args:
        urls: the URLs; trailing slashes and repetitions do not count.
        setting: name of the setting with the URLs, for errors.

    Raises:
        BadSettings: the list is empty or too long.
    """

    def __init__(self, urls: Sequence[str], *, setting: str) -> None:
        self.urls = tuple(dict.fromkeys(url.rstrip("/") for url in urls))
        self.setting = setting
        if not 1 <= len(self.urls) <= SERVERS_MAX:
            raise BadSettings(setting, f"must be the URLs of 1 to {SERVERS_MAX} servers, got {len(self.urls)}")
        self._lock = Lock()
        self._at = 0

    @property
    def current(self) -> str:
        """The server for the next request."""
        return self.urls[self._at]

    def advance(self, failed: str) -> None:
        """Go on with the server after one that does not answer.

        Threads that use the same server report its failure at about the same time; only the first report counts.
        """
        with self._lock:
            if self.current == failed:
                self._at = (self._at + 1) % len(self.urls)
