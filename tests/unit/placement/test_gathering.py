import queue
from collections import deque

from roost.placement.group_commit import Gathering


class Arrivals:
    """A queue whose tasks come now or, behind a pause, only to whoever waits for them."""

    def __init__(self, *tasks):
        self.tasks = deque(tasks)
        self.waits = []  # seconds, of those that were made

    def __len__(self):
        """Tell how many are there now."""
        found = 0
        for task in self.tasks:
            if task == "pause":
                break
            found += 1
        return found

    def get(self, at_most_s=None):
        """Give the next one."""
        is_late = not self.tasks or self.tasks[0] == "pause"
        is_patient = at_most_s is None or at_most_s > 0
        if is_patient and at_most_s is not None and is_late:
            self.waits.append(at_most_s)
        if not self.tasks or (is_late and not is_patient):
            raise queue.Empty
        if is_late:
            self.tasks.popleft()
        return self.tasks.popleft()


def groups(arrivals, *, most=8, has_written=True, count):
    gathering = Gathering(arrivals, most)
    return [gathering.next(has_written=has_written) for _ in range(count)]


def test_whoever_asks_alone_never_waits():
    arrivals = Arrivals("a", "pause", "a", "pause", "a", "pause", "a")
    assert groups(arrivals, count=3) == [["a"], ["a"], ["a"]]
    assert arrivals.waits == []


def test_those_who_were_answered_join_those_who_wait():
    arrivals = Arrivals("a", "b")
    gathering = Gathering(arrivals, 8)
    assert gathering.next(has_written=True) == ["a", "b"]
    arrivals.tasks.extend(["c", "d", "pause", "a", "pause", "b"])
    assert gathering.next(has_written=True) == ["c", "d", "a", "b"]
    assert len(arrivals.waits) == 2
    assert all(0 < each < 0.001 for each in arrivals.waits)


def test_readers_do_not_wait_for_each_other():
    arrivals = Arrivals("a", "b", "pause", "c", "pause", "a", "pause", "b")
    assert groups(arrivals, has_written=False, count=4) == [["a", "b"], ["c"], ["a"], ["b"]]
    assert arrivals.waits == []


def test_who_stays_away_is_expected_once():
    arrivals = Arrivals("a", "b", "c", "pause", "a")
    assert groups(arrivals, count=2) == [["a", "b", "c"], ["a"]]
    assert len(arrivals.waits) == 1
    arrivals.tasks.extend(["pause", "a"])
    gathering = Gathering(arrivals, 8)
    gathering.next(has_written=True)
    arrivals.tasks.extend(["pause", "a"])
    assert gathering.next(has_written=True) == ["a"]
    assert len(arrivals.waits) == 1


def test_a_group_has_its_limit_and_ends_with_the_end():
    assert groups(Arrivals("a", "b", "c", "d", None), most=3, count=2) == [["a", "b", "c"], ["d", None]]
    assert groups(Arrivals("a", None, "b"), count=1) == [["a", None]]
