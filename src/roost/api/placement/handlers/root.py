"""``/``: the supported versions."""

from roost.api.http import Request, Response, make_response
from roost.model.placement.microversions import NEWEST, OLDEST
from roost.placement.current import Current


def versions_document(request: Request, current: Current) -> Response:
    """Show the supported versions, without authentication."""
    version = {
        "id": "v1.0",
        "max_version": str(NEWEST),
        "min_version": str(OLDEST),
        "status": "CURRENT",
        "links": [{"rel": "self", "href": ""}],
    }
    return make_response(request, {"versions": [version]}, changed_s=current.state.now_s)
