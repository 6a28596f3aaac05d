"""Lessons of weighers from requests: each request is observed once, after its decision is durable."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from roost.errors import BadSettings
from roost.model.evidence.lesson import Arrival, Lesson
from roost.model.names import uuid_bytes
from roost.model.request import Request
from roost.ports import Documents, Placement
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Learns, Weigher, implements
from roost.scheduler.pipeline.counted_numbers import Ranges, add, contains, unite
from roost.scheduler.pipeline.stage import PendingRequest

_FIRST = 100  # requests before the first document
# Upper bound on requests between two documents; before, each document has twice the requests of the one before.
_GAP_MAX = 10_000
# Upper bound on observations without a document, if none can be written.
_PENDING_MAX = 2 * _GAP_MAX
# Upper bound on remembered refusals, to recognise repeated requests.
_REFUSALS_MAX = 20_000
# Attempts to write a document before the next settled commit tries again.
_TRIES = 3


class LessonStore(Protocol):
    """Stores lessons of weighers."""

    def put(self, lesson: Lesson) -> bool:
        """Commit a version, and use it from now on; return False if another process stored this version first."""

    def arrivals(self, is_counted: Callable[[int], bool]) -> Sequence[Arrival]:
        """Return the last stored decisions without those counted already, oldest first."""


class LearningDocuments(Documents, Protocol):
    """The storage of documents and lessons."""

    @property
    def lessons(self) -> LessonStore:
        """The lessons of weighers."""


class LearningWeigher(Weigher, Learns, Protocol):
    """A learning weigher."""


class _Observation(NamedTuple):
    number: int  # of the decision
    content: Any  # of ``Learns.observe``


class Observations:
    """Observes requests, and lets weighers learn from them.

    Args:
        weighers: all weighers in use.
        placement: the columns.
        store: stores their lessons.
        is_remote: whether a remote Placement has the inventories.

    Raises:
        BadSettings: a weigher would have to learn about inventories of the remote Placement.
    """

    def __init__(
        self, weighers: Sequence[Weigher], *, placement: Placement, store: LessonStore, is_remote: bool = False
    ) -> None:
        learning: list[LearningWeigher] = [weigher for weigher in weighers if implements(weigher, Learns)]
        if is_remote:
            _refuse_remote(learning)
            learning = []
        self._learners = [_Learner(weigher, placement=placement, store=store) for weigher in learning]
        self._store = store
        self._placement = placement
        self._refusals: OrderedDict[bytes, None] = OrderedDict()  # by the first uuid of the request

    def begin(self) -> None:
        """Observe stored decisions outside of the newest documents, such as those of an ended process."""
        for learner in self._learners:
            if learner.is_active and not learner.has_begun:
                learner.has_begun = True
                for arrival in self._store.arrivals(learner.is_counted):
                    is_new = self._is_new(arrival.request, arrival.first_uuid, is_granted=arrival.is_granted)
                    learner.observe(arrival.number, arrival.request if is_new else None)
                learner.learn()

    def add(self, pending: PendingRequest) -> None:
        """Observe a request after its decision is durable."""
        learners = [learner for learner in self._learners if learner.is_active]
        decision, evidence, request = pending.decision, pending.evidence, pending.request
        if not learners or decision is None or evidence is None:
            return
        first_uuid = uuid_bytes(request.instance_uuids[0]) if request.instance_uuids else None
        is_new = self._is_new(request, first_uuid or b"", is_granted=decision.is_granted)
        for learner in learners:
            learner.observe(evidence.id, request if is_new else None)

    def learn(self) -> None:
        """Write the documents due; nothing may be staged."""
        for learner in self._learners:
            if learner.is_active:
                learner.learn()

    def _is_new(self, request: Request, first_uuid: bytes, *, is_granted: bool) -> bool:
        """Return whether a request is neither a move, nor a further attempt for the same instances."""
        is_repeated = bool(first_uuid) and first_uuid in self._refusals
        if is_granted:
            self._refusals.pop(first_uuid, None)
        elif first_uuid:
            self._refusals[first_uuid] = None
            if len(self._refusals) > _REFUSALS_MAX:
                self._refusals.popitem(last=False)
        is_retry = request.retry is not None and request.retry.attempts > 1
        return request.move is None and not is_retry and not is_repeated


class _Learner:
    """A learning weigher, and its observations without a document."""

    def __init__(self, weigher: LearningWeigher, *, placement: Placement, store: LessonStore) -> None:
        self._weigher = weigher
        self._placement = placement
        self._store = store
        self._pending: list[_Observation] = []
        self._numbers: Ranges = []  # of all decisions without a document, whether observed or not
        self.has_begun = False

    @property
    def is_active(self) -> bool:
        """Whether the weigher has a multiplier."""
        key = self._weigher.aggregate_key
        return self._weigher.multiplier != 0.0 or any(key in each for each in self._placement.state.metadata.values())

    @property
    def _lesson(self) -> Lesson | None:
        return self._placement.state.lessons.get(self._weigher.lesson_name)

    def is_counted(self, number: int) -> bool:
        """Return whether the newest document counts a decision."""
        lesson = self._lesson
        return lesson is not None and contains(lesson.counted, number)

    def observe(self, number: int, request: Request | None) -> None:
        """Observe the request of a decision; None: nothing to observe."""
        add(self._numbers, number)
        content = None if request is None else self._weigher.observe(request)
        if content is not None:
            self._pending.append(_Observation(number, content))
            if len(self._pending) > _PENDING_MAX:
                del self._pending[: _PENDING_MAX // 2]

    def learn(self) -> None:
        """Write the next document, if it is due.

        If another process wrote a document first, it may have counted some of the same decisions, such as those of
        an ended process. So they count only if they are not in its document.
        """
        for _ in range(_TRIES):
            present = self._lesson
            requests = 0 if present is None else present.requests
            if requests + len(self._pending) < next_refresh(requests):
                return
            self._pending = [each for each in self._pending if not self.is_counted(each.number)]
            if requests + len(self._pending) < next_refresh(requests):
                return
            body = self._weigher.learn(
                None if present is None else present.body,
                [each.content for each in self._pending],
                HostView(self._placement.state),
            )
            if body is None:
                self._pending.clear()
                return
            lesson = Lesson(
                name=self._weigher.lesson_name,
                version=0 if present is None else present.version + 1,
                requests=requests + len(self._pending),
                counted=unite([] if present is None else present.counted, self._numbers),
                body=body,
            )
            if self._store.put(lesson):
                self._pending, self._numbers = [], []
                return


def next_refresh(requests: int) -> int:
    """Return the number of counted requests of the next document: 100, 200, 400, … 12,800, 22,800."""
    due = _FIRST
    while due <= requests and due < _GAP_MAX:
        due *= 2
    return due if due > requests else requests - (requests - due) % _GAP_MAX + _GAP_MAX


def _refuse_remote(weighers: Sequence[LearningWeigher]) -> None:
    for weigher in weighers:
        if weigher.multiplier != 0.0:
            raise BadSettings(
                f"weigher {weigher.name}",
                "cannot learn with a remote Placement, which has the inventories: set its multiplier to 0",
            )
