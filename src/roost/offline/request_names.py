"""Resolves the names of a request document in a fleet."""

from roost.errors import BadFile
from roost.model.documents.request_document import RequestDocument
from roost.model.request import Request
from roost.offline.load import DocumentFleet
from roost.scheduler.query import request_lookup


def resolve_request(document: RequestDocument, fleet: DocumentFleet, *, file: str) -> Request:
    """Resolve a document to a request.

    Args:
        document: the request document.
        fleet: the fleet with its server groups and aggregates.
        file: name of the document in errors.

    Raises:
        BadFile: a server group or an aggregate is unknown, or a value is invalid.
    """
    try:
        return request_lookup.resolve_request(document, _Names(fleet, file))
    except ValueError as error:
        raise BadFile(file, f"$: {error}") from None


class _Names:
    """Lookup of names in a fleet; see ``roost.scheduler.query.request_lookup.Names``."""

    def __init__(self, fleet: DocumentFleet, file: str) -> None:
        self._fleet = fleet
        self._file = file

    def group(self, name: str, *, at: str) -> str:
        return self._fleet.groups.find(name, at=at, file=self._file)

    def aggregate(self, name: str, *, at: str) -> str:
        return self._fleet.aggregates.find(name, at=at, file=self._file)
