"""From a request document to the request, its names looked up in a world."""

from roost.errors import BadFile
from roost.model.documents.request_document import RequestDocument
from roost.model.request import Request
from roost.offline.load import DocumentFleet
from roost.scheduler.query import request_lookup


def resolve_request(document: RequestDocument, world: DocumentFleet, *, file: str) -> Request:
    """Return the request of a document.

    Args:
        document: what is asked for.
        world: whose server groups and aggregates it names.
        file: its name in errors.

    Raises:
        BadFile: a server group or an aggregate is not there, or something cannot be meant.
    """
    try:
        return request_lookup.resolve_request(document, _Names(world, file))
    except ValueError as error:
        raise BadFile(file, f"$: {error}") from None


class _Names:
    """What the parts of a world are called; see ``roost.scheduler.query.request_lookup.Names``."""

    def __init__(self, world: DocumentFleet, file: str) -> None:
        self._world = world
        self._file = file

    def group(self, name: str, *, at: str) -> str:
        return self._world.groups.find(name, at=at, file=self._file)

    def aggregate(self, name: str, *, at: str) -> str:
        return self._world.aggregates.find(name, at=at, file=self._file)
