"""A report client's connection to a Placement of another process, over HTTP."""

from collections.abc import Mapping

from roost.client.outage_text import describe_outage
from roost.client.placement_http import SETTING
from roost.client.wire import LOST, Wire, decode_json
from roost.errors import PlacementGone
from roost.model.placement.placement_api import Answer


class ReportHttp:
    """A Placement API over HTTP, OpenStack's or Roost's, for one thread at a time.

    Args:
        url: URL of the API, without ``/resource_providers``.
        headers: of every request, such as ``x-auth-token``; reshapes need the role ``service`` on most servers.
        timeout_s: timeout of an answer, > 0.
        setting: name of the setting with the URL, for errors.

    Raises:
        BadSettings: the URL is invalid. The first request shows whether a server answers.
    """

    def __init__(
        self, url: str, *, headers: Mapping[str, str], timeout_s: float = 60.0, setting: str = SETTING
    ) -> None:
        self._wire = Wire(url, headers=headers, timeout_s=timeout_s, setting=setting)

    def ask(self, method: str, path: str, body: object = None, *, version: str) -> Answer:
        """Send a request; send it again if the server may have closed the idle connection.

        Raises:
            PlacementGone: no answer; the request may have been carried out.
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
                raise PlacementGone(describe_outage(error, self._wire.url)) from error
            return Answer(status, decode_json(text), is_repeated)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._wire.close()
