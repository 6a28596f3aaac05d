"""Threads that do what others cannot wait for."""

import threading

from roost.compute.crew import Crew


class Time:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self):
        """Give the time."""
        return self.now_s


def crew(time=None, *, count=1, most=3, errors=None):
    """Give a crew whose jobs hang after ten seconds."""
    broken = [].append if errors is None else errors.append
    return Crew("hanging", count=count, patience_s=10.0, most=most, now_s=time or Time(), broken=broken)


def test_jobs_of_one_thread_are_done_in_their_order():
    done, end, own = [], threading.Event(), crew()
    for number in range(5):
        own.put(lambda number=number: done.append(number))
    own.put(end.set)
    assert end.wait(30)
    assert done == [0, 1, 2, 3, 4]
    own.close()


def test_a_thread_that_hangs_gets_another_beside_it_but_not_without_end():
    time = Time()
    own, go, done = crew(time, most=2), threading.Event(), threading.Event()

    def hang(begun):
        begun.set()
        go.wait(30)

    first, second = threading.Event(), threading.Event()
    own.put(lambda: hang(first))
    assert first.wait(30)
    own.put(lambda: hang(second))
    own.look()
    assert not second.is_set()
    time.now_s = 10.0
    own.look()
    assert second.wait(30)
    time.now_s = 20.0
    own.put(done.set)
    own.look()
    assert len([each for each in threading.enumerate() if each.name.startswith("hanging-")]) == 2
    go.set()
    assert done.wait(30)
    own.close()


def test_a_job_that_raises_is_told_of_and_the_next_is_done():
    errors, end = [], threading.Event()
    own = crew(errors=errors)
    own.put(lambda: 1 / 0)
    own.put(end.set)
    assert end.wait(30)
    assert [type(error) for error in errors] == [ZeroDivisionError]
    own.close()


def test_after_the_end_nothing_is_done():
    own, done = crew(), []
    own.close()
    own.put(lambda: done.append(1))
    assert done == []
