import queue
from collections import deque

from roost.placement.group_commit import Gathering


class ScriptedArrivals:
    """A queue whose tasks are there at once or, behind a pause, arrive during a wait."""

    def __init__(self, *tasks):
        self.tasks = deque(tasks)
        self.waits = []  # seconds of each wait

    def __len__(self):
        """Return the number of tasks before the next pause."""
        count = 0
        for task in self.tasks:
            if task == "pause":
                break
            count += 1
        return count

    def get(self, at_most_s=None):
        """Return the next task."""
        is_late = not self.tasks or self.tasks[0] == "pause"
        is_patient = at_most_s is None or at_most_s > 0
        if is_patient and at_most_s is not None and is_late:
            self.waits.append(at_most_s)
        if not self.tasks or (is_late and not is_patient):
            raise queue.Empty
        if is_late:
            self.tasks.popleft()
        return self.tasks.popleft()


def groups(arrivals, *, size_max=8, has_written=True, count):
    gathering = Gathering(arrivals, size_max)
    return [gathering.next(has_written=has_written) for _ in range(count)]


def test_single_client_never_waits():
    arrivals = ScriptedArrivals("a", "pause", "a", "pause", "a", "pause", "a")
    assert groups(arrivals, count=3) == [["a"], ["a"], ["a"]]
    assert arrivals.waits == []


def test_clients_just_answered_join_the_next_group():
    arrivals = ScriptedArrivals("a", "b")
    gathering = Gathering(arrivals, 8)
    assert gathering.next(has_written=True) == ["a", "b"]
    arrivals.tasks.extend(["c", "d", "pause", "a", "pause", "b"])
    assert gathering.next(has_written=True) == ["c", "d", "a", "b"]
    assert len(arrivals.waits) == 2
    assert all(0 < each < 0.001 for each in arrivals.waits)


def test_groups_without_writes_do_not_wait():
    arrivals = ScriptedArrivals("a", "b", "pause", "c", "pause", "a", "pause", "b")
    assert groups(arrivals, has_written=False, count=4) == [["a", "b"], ["c"], ["a"], ["b"]]
    assert arrivals.waits == []


def test_absent_client_is_awaited_only_once():
    arrivals = ScriptedArrivals("a", "b", "c", "pause", "a")
    assert groups(arrivals, count=2) == [["a", "b", "c"], ["a"]]
    assert len(arrivals.waits) == 1
    arrivals.tasks.extend(["pause", "a"])
    gathering = Gathering(arrivals, 8)
    gathering.next(has_written=True)
    arrivals.tasks.extend(["pause", "a"])
    assert gathering.next(has_written=True) == ["a"]
    assert len(arrivals.waits) == 1


def test_group_has_a_maximum_size_and_ends_at_the_end_of_the_queue():
    assert groups(ScriptedArrivals("a", "b", "c", "d", None), size_max=3, count=2) == [["a", "b", "c"], ["d", None]]
    assert groups(ScriptedArrivals("a", None, "b"), count=1) == [["a", None]]
