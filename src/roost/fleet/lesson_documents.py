"""Lessons of weighers as documents, and the stored decisions outside of them."""

from collections.abc import Callable
from typing import Protocol

import msgspec

from roost.errors import report_corruption
from roost.fleet.stored_documents import document_of
from roost.model.evidence.lesson import LEARNED, Arrival, Lesson
from roost.model.request import Request
from roost.model.stored_decision import DecisionQuery, arrival_of
from roost.model.writes import Item
from roost.ports import Commits, FleetLedger, Store

# Upper bound on stored decisions that are read again at a start: some tenths of a second of work.
_DECISIONS_MAX = 20_000

_encoder = msgspec.msgpack.Encoder()
_request = msgspec.json.Decoder(Request)


class StoredLedger(FleetLedger, Commits, Protocol):
    """The columns, and the database behind them."""

    store: Store


class LessonDocuments:
    """Stores the lessons of weighers.

    Args:
        ledger: the columns and the database.
    """

    def __init__(self, ledger: StoredLedger) -> None:
        self._ledger = ledger

    def put(self, lesson: Lesson) -> bool:
        """Commit a version, and use it from now on; return False if another process stored this version first.

        In both cases the columns then have the newest stored version.
        """
        key = f"{lesson.version}\0{lesson.name}".encode()
        document = document_of(LEARNED, key, _encoder.encode(lesson))
        return self._ledger.commit([Item(writes=(document,))])[0] is None

    def arrivals(self, is_counted: Callable[[int], bool]) -> list[Arrival]:
        """Return the last stored decisions, up to 20,000, oldest first.

        Args:
            is_counted: whether the decision of a number is to be left out.
        """
        store = self._ledger.store
        requests: dict[int, Request | None] = {}
        found = []
        for row in store.decisions(DecisionQuery(newest=_DECISIONS_MAX)):
            if is_counted(row.id):
                continue
            request_id, count, first_uuid = arrival_of(row)
            if request_id not in requests:
                body = store.document(request_id)
                with report_corruption("the request of a decision"):
                    requests[request_id] = None if body is None else _request.decode(body)
            request = requests[request_id]
            if request is not None:
                own = msgspec.structs.replace(request, count=count)
                found.append(Arrival(row.id, own, first_uuid, row.outcome == "granted"))
        return found[::-1]
