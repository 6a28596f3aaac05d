"""What happens to instances, operations and agents is told to whoever follows the events of this process."""

from collections import deque
from threading import Event, Thread

import msgspec

from roost.conductor.story_feed import StoryFeed
from roost.errors import Unavailable
from roost.machine import SystemClock
from roost.model.names import uuid_text
from roost.model.work.notification import Happening
from roost.model.work.work_rows import EventRow
from roost.observe import log
from roost.observe.event_buffer import Events
from roost.placement.deciding_thread import Serving
from roost.ports import WorkReader

# What any process commits is looked for so often.
_POLL_S = 1.0
# Of so many operations the uuid is remembered.
_OPERATIONS_MAX = 10_000


class StoryPublisher:
    """A thread that tells events, whichever process committed them.

    Args:
        events: where they are told.
        look_s: how often it looks for them.
    """

    def __init__(self, events: Events, *, look_s: float = _POLL_S) -> None:
        self._events, self._look_s = events, look_s
        self._is_stopped = Event()
        self._thread: Thread | None = None
        self._operations: dict[int, str | None] = {0: None}  # uuids by their ids
        self._pending: deque[EventRow] = deque()

    def start(self, serving: Serving) -> None:
        """Begin with what happens next.

        Raises:
            Unavailable: the database cannot be read.
        """
        clock = SystemClock()
        reader: WorkReader = serving.run(lambda current: current.store.work_reader(clock))
        tail = StoryFeed(reader)
        self._thread = Thread(target=self._work, args=(tail, reader), name="telling", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Stop, and wait until the thread has ended."""
        self._is_stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self, tail: StoryFeed, reader: WorkReader) -> None:
        try:
            while not self._is_stopped.wait(self._look_s):
                try:
                    self._pending.extend(tail.news())
                    self._publish_all(reader)
                except Unavailable:  # The next look may do; the log hears of it from the thread that commits.
                    continue
                except Exception as error:  # noqa: BLE001  # the thread must live on
                    log.fault("telling", error)
        finally:
            reader.close()

    def _publish_all(self, reader: WorkReader) -> None:
        """Tell what is to be told; one that cannot be is left out, and what the database does not tell now waits."""
        while self._pending:
            try:
                self._publish(self._pending[0], reader)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001  # the others are told
                log.fault("telling", error)
            self._pending.popleft()

    def _publish(self, row: EventRow, reader: WorkReader) -> None:
        instance = None if row.instance_uuid is None else uuid_text(row.instance_uuid)
        payload = Happening(
            number=row.id,
            instance_uuid=instance,
            operation_uuid=self._operation(row.operation_id, reader),
            told=msgspec.json.decode(row.body, type=dict[str, str]) if row.body else {},
        )
        # Each process tells it; the webhook would hear it from all of them.
        self._events.publish(event_type_of(row), payload, time_s=row.at_s, is_sent=False)

    def _operation(self, number: int, reader: WorkReader) -> str | None:
        if number not in self._operations:
            while len(self._operations) > _OPERATIONS_MAX:
                del self._operations[next(key for key in self._operations if key)]
            row = reader.operation(number)
            self._operations[number] = None if row is None else uuid_text(row.uuid)
        return self._operations[number]


def event_type_of(row: EventRow) -> str:
    """Return the type of an event: what it is about, then what happened."""
    if row.instance_uuid is not None:
        return f"instance.{row.kind}"
    # An operation makes a host clean, and yet it is the agent that is ready.
    is_of_agent = row.kind.startswith("agent.") or not row.operation_id
    return row.kind if is_of_agent else f"operation.{row.kind}"
