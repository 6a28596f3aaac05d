"""Stored decisions: find them by uuid, and unpack them."""

from roost.errors import NotFound, report_corruption
from roost.model.evidence.decision import Decision
from roost.model.names import uuid_bytes, uuid_text
from roost.model.stored_decision import checks_of, processes_of, unpack
from roost.model.writes import EvidenceRow
from roost.ports import Store


def find_row(uuid: str, store: Store) -> EvidenceRow:
    """Return the row of a stored decision.

    Raises:
        NotFound: the decision does not exist, or was deleted.
    """
    key = uuid_bytes(uuid)
    rows = [] if key is None else store.evidence(uuid=key)
    if not rows:
        raise NotFound("decision", uuid)
    # Two processes may decide a request under one uuid, but only one of them can claim.
    return next((row for row in rows if row.outcome == "granted"), rows[0])


def find_decision(uuid: str, store: Store) -> tuple[EvidenceRow, Decision]:
    """Return a stored decision, and its row.

    Raises:
        NotFound: the decision does not exist, or was deleted.
    """
    row = find_row(uuid, store)
    return row, unpack_row(row, store)


def unpack_row(row: EvidenceRow, store: Store) -> Decision:
    """Return the decision of a row.

    Raises:
        NotFound: the document of its checks or of its processes was deleted.
    """
    uuid = uuid_text(row.uuid)
    with report_corruption(f"decision {uuid}"):
        checks = store.document(checks_of(row))
        if checks is None:
            raise NotFound("document of the checks of decision", uuid)
        number = processes_of(row)
        processes = store.document(number) if number else b""
        if processes is None:
            raise NotFound("document of the processes of decision", uuid)
        return unpack(row, checks, processes=processes)
