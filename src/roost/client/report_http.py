"""The way of a report client to a Placement of another process: over HTTP."""

from collections.abc import Mapping

from roost.client.placement_http import SETTING
from roost.client.wire import LOST, Wire, decode_json
from roost.errors import PlacementGone
from roost.model.placement_api import Answer


class ReportHttp:
    """A Placement API over HTTP, upstream's or Roost's; one thread uses it at a time.

    Args:
        url: where ``/resource_providers`` is found below.
        headers: of every request, as ``x-auth-token``; who reshapes needs the role ``service`` at most servers.
        timeout_s: for which one answer is waited for, > 0.
        setting: where the address stands, for the error.

    Raises:
        BadSettings: the address is none. Whether anything answers there is seen when it is asked.
    """

    def __init__(
        self, url: str, *, headers: Mapping[str, str], timeout_s: float = 60.0, setting: str = SETTING
    ) -> None:
        self._wire = Wire(url, headers=headers, timeout_s=timeout_s, setting=setting)

    def ask(self, method: str, path: str, body: object = None, *, version: str) -> Answer:
        """Ask once, or twice where the connection was kept and the server may have closed it since.

        Raises:
            PlacementGone: no answer came; whether it was carried out is not known.
        """
        is_repeated = False
        while True:
            was_open = self._wire.is_open
            try:
                status, text = self._wire.send(method, path, body, version=version)
            except LOST as error:
                if was_open and not isinstance(error, TimeoutError):
                    is_repeated = True
                    continue
                raise PlacementGone(str(error) or type(error).__name__) from error
            return Answer(status, decode_json(text), is_repeated)

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        self._wire.close()
