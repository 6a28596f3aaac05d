"""Columns of a recent moment, so that the states of newer decisions are rebuilt in a fraction of a second."""

from collections import deque
from typing import NamedTuple

from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.placement.current import Current
from roost.ports import FeedMark

# The columns stay so many changed rows behind the current ones. Older decisions are rebuilt from a snapshot.
_LAG_MIN, _LAG_MAX = 20_000, 40_000
# Minimum number of changed rows between two noted moments.
_STEP = 2_000
_MARKS_MAX = 100


class _Moment(NamedTuple):
    """A moment of the current columns."""

    mark: FeedMark
    work: int  # rows that have changed since the columns were loaded


class PastBase:
    """A second set of columns, which lags behind the current ones.

    It belongs to a process that forks for each use, since ``take`` gives the only columns away.

    Args:
        current: the columns to lag behind; its store must have the feed.
    """

    def __init__(self, current: Current) -> None:
        self._current = current
        self._origin = current.state  # the columns that it lags behind
        self._state: State | None = _copy(current.state)
        self._moment = self._now()
        self._later: deque[_Moment] = deque(maxlen=_MARKS_MAX)

    @property
    def mark(self) -> FeedMark | None:
        """The changes in the columns; None: the columns were taken."""
        return self._moment.mark if self._state is not None else None

    def take(self) -> State:
        """Return the columns, and lose them."""
        state, self._state = self._state, None
        assert state is not None, "the caller checks ``mark``"
        return state

    def follow(self) -> None:
        """Note the moment of the current columns; call this after each refresh of them."""
        if self._current.state is not self._origin:
            self._restart()  # They were loaded again: the database may be another one.
            return
        now = self._now()
        if now.work - (self._later[-1] if self._later else self._moment).work >= _STEP:
            self._later.append(now)

    def advance(self) -> None:
        """Bring the columns closer to the current ones if they are too far behind: some tenths of a second of work."""
        work = _work_of(self._current.state)
        if self._state is None or work - self._moment.work < _LAG_MAX or not self._later:
            return
        target = next((each for each in reversed(self._later) if each.work <= work - _LAG_MIN), self._later[-1])
        state, self._state = self._state, None  # An error below leaves no half of the changes behind.
        past = self._current.store.past(target.mark.position, target.mark.visible, after=self._moment.mark)
        if past is None or not past.is_after:  # The changes between were deleted.
            self._restart()
            return
        for write in past.writes:
            apply(state, write)
        recount_hosts(state)
        state.position = target.mark.position
        self._state, self._moment = state, target
        while self._later and self._later[0].work <= target.work:
            self._later.popleft()

    def _restart(self) -> None:
        self._origin = self._current.state
        self._state, self._moment = _copy(self._origin), self._now()
        self._later.clear()

    def _now(self) -> _Moment:
        state = self._current.state
        return _Moment(FeedMark(state.position, self._current.store.visible_changes), _work_of(state))


def _work_of(state: State) -> int:
    """Return the number of changed rows since the columns were loaded, a measure of the work to repeat the changes."""
    changes = state.changes
    return changes.hosts.position + changes.providers.position + changes.epoch


def _copy(state: State) -> State:
    copy = state.fork()
    copy.now_s = State().now_s  # As in columns that are rebuilt from a snapshot.
    return copy
