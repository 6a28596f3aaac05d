"""Transport of a report client to a Placement API in this process."""

from typing import Any

from roost.errors import PlacementGone, Unavailable
from roost.model.placement.placement_api import Answer

# Reshapes need the role ``service``; ``admin`` allows all other requests.
_ROLES = {"x-roles": "admin,service"}


class DirectHttp:
    """A Placement API in this process, through the client of ``roost.PlacementDirect``.

    Args:
        client: a ``roost.direct.direct_client.Client``, or a keystoneauth adapter.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def ask(self, method: str, path: str, body: object = None, *, version: str) -> Answer:
        """Send one request.

        Raises:
            PlacementGone: the ``with`` block has ended.
        """
        try:
            answer = self._client.request(path, method, json=body, microversion=version, headers=_ROLES)
        except Unavailable as error:
            raise PlacementGone(str(error)) from error
        return Answer(answer.status_code, answer.json() if answer.content else None)
