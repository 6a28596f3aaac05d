"""Publishes the stories of instances, operations and agents, and changes by clients, as events of this process."""

from collections import deque
from collections.abc import Sequence
from threading import Event, Thread

import msgspec

from roost.conductor.operation.story import event_type_of
from roost.conductor.story_feed import RowFeed, follow_changes, follow_stories
from roost.errors import Unavailable
from roost.machine import SystemClock
from roost.model.names import uuid_text
from roost.model.work.change_query import FREQUENT_KINDS
from roost.model.work.notification import ChangeEvent, StoryEvent
from roost.model.work.work_rows import ChangeRow, EventRow
from roost.observe import log
from roost.observe.event_buffer import Events
from roost.placement.deciding_thread import Serving
from roost.ports import WorkReader

# Seconds between polls for commits of any process.
_POLL_S = 1.0
# Maximum number of events of one request.
_CLAIMS_MAX = 100
# Maximum number of operations with a cached uuid.
_OPERATIONS_MAX = 10_000


class StoryPublisher:
    """A thread that publishes story rows and changes, from all processes, as events.

    Args:
        events: the event buffer of this process.
        poll_s: seconds between polls.
    """

    def __init__(self, events: Events, *, poll_s: float = _POLL_S) -> None:
        self._events, self._poll_s = events, poll_s
        self._is_stopped = Event()
        self._thread: Thread | None = None
        self._operations: dict[int, str | None] = {0: None}  # uuids of operations, by their ids
        self._pending: deque[EventRow | ChangeRow] = deque()

    def start(self, serving: Serving) -> None:
        """Start the thread. It publishes new rows only.

        Raises:
            Unavailable: the database cannot be read.
        """
        clock = SystemClock()
        reader: WorkReader = serving.run(lambda current: current.store.work_reader(clock))
        feeds = follow_stories(reader), follow_changes(reader)
        self._thread = Thread(target=self._work, args=(*feeds, reader), name="stories", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Stop, and wait for the thread."""
        self._is_stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self, stories: RowFeed[EventRow], changes: RowFeed[ChangeRow], reader: WorkReader) -> None:
        try:
            while not self._is_stopped.wait(self._poll_s):
                try:
                    self._pending.extend(stories.news())
                    self._pending.extend(row for row in changes.news() if not has_story(row))
                    self._publish_all(reader)
                except Unavailable:  # Retry at the next poll; the committing thread logs it.
                    continue
                except Exception as error:  # noqa: BLE001  # the thread must keep running
                    log.fault("stories", error)
        finally:
            reader.close()

    def _publish_all(self, reader: WorkReader) -> None:
        """Publish the pending rows. Skip rows with decode errors; keep the others during an outage of the database."""
        while self._pending:
            try:
                self._publish(self._pending[0], reader)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001  # publish the others
                log.fault("stories", error)
            self._pending.popleft()

    def _publish(self, row: EventRow | ChangeRow, reader: WorkReader) -> None:
        if isinstance(row, ChangeRow):
            publish_change(self._events, row)
            return
        instance = None if row.instance_uuid is None else uuid_text(row.instance_uuid)
        payload = StoryEvent(
            number=row.id,
            instance_uuid=instance,
            operation_uuid=self._operation(row.operation_id, reader),
            told=msgspec.json.decode(row.body, type=dict[str, str]) if row.body else {},
        )
        # Do not send the row to the webhook: every process publishes it, so the webhook would receive duplicates.
        self._events.publish(event_type_of(row), payload, time_s=row.at_s, is_sent=False)

    def _operation(self, number: int, reader: WorkReader) -> str | None:
        if number not in self._operations:
            while len(self._operations) > _OPERATIONS_MAX:
                del self._operations[next(key for key in self._operations if key)]
            row = reader.operation(number)
            self._operations[number] = None if row is None else uuid_text(row.uuid)
        return self._operations[number]


def has_story(row: ChangeRow) -> bool:
    """Return whether a change is also a line of a story, which is an event already."""
    return row.kind.startswith(("instance.", "operation."))


def publish_claims(events: Events, rows: Sequence[ChangeRow]) -> None:
    """Publish claims and releases that this process committed; they are too many to read back.

    Decisions have events of their own.
    """
    for row in rows[:_CLAIMS_MAX]:
        if row.kind in FREQUENT_KINDS and not row.kind.startswith("decision."):
            publish_change(events, row)


def publish_change(events: Events, row: ChangeRow) -> None:
    """Publish a change under its kind; not to the webhook, since every process publishes it."""
    payload = ChangeEvent(
        number=row.id,
        object=row.object,
        user_id=row.user_id,
        project_id=row.project_id,
        request_id=row.request_id,
        told=msgspec.json.decode(row.body, type=dict[str, str]) if row.body else {},
    )
    events.publish(row.kind, payload, time_s=row.at_s, is_sent=False)
