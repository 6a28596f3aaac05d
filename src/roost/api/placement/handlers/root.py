"""``/``: the supported versions."""

from dataclasses import replace

from roost.api.http import Request, Response, make_response
from roost.model.placement.microversions import NEWEST, OLDEST
from roost.placement.current import Current


def versions_document(request: Request, current: Current) -> Response:
    """Show the supported versions, without authentication.

    The response ends its connection. A client that reads the versions first and then forks workers, such as
    nova-scheduler, would share an open connection with them, and each would read parts of the answers to others.
    """
    version = {
        "id": "v1.0",
        "max_version": str(NEWEST),
        "min_version": str(OLDEST),
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    response = make_response(request, {"versions": [version]}, changed_s=current.state.now_s)
    return replace(response, headers={**response.headers, "connection": "close"})
