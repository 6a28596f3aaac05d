"""Threads that do what others cannot wait for."""

import threading

from roost.compute.agent.worker_pool import Crew


class Time:
    """A clock that is set by hand."""

    now_s = 0.0

    def __call__(self):
        """Give the time."""
        return self.now_s


def crew(time=None, *, count=1, most=3, errors=None, hanging=None):
    """Give a crew whose jobs hang after ten seconds."""
    broken, hangs = ([].append if each is None else each.append for each in (errors, hanging))
    return Crew("hanging", count=count, patience_s=10.0, most=most, now_s=time or Time(), broken=broken, hangs=hangs)


def test_jobs_of_one_thread_are_done_in_their_order():
    done, end, own = [], threading.Event(), crew()
    for number in range(5):
        own.put(lambda number=number: done.append(number), "a job")
    own.put(end.set, "the end")
    assert end.wait(30)
    assert done == [0, 1, 2, 3, 4]
    own.close()


def test_a_thread_that_hangs_gets_another_beside_it_but_not_without_end():
    time = Time()
    hanging, go, done = [], threading.Event(), threading.Event()
    own = crew(time, most=2, hanging=hanging)

    def hang(begun):
        begun.set()
        go.wait(30)

    first, second = threading.Event(), threading.Event()
    own.put(lambda: hang(first), "the first")
    assert first.wait(30)
    own.put(lambda: hang(second), "the second")
    own.look()
    assert (second.is_set(), hanging) == (False, [])
    time.now_s = 10.0
    own.look()
    own.look()
    assert hanging == ["the first"]
    assert second.wait(30)
    time.now_s = 20.0
    own.put(done.set, "the third")
    own.look()
    assert len([each for each in threading.enumerate() if each.name.startswith("hanging-")]) == 2
    assert hanging == ["the first", "the second"]
    go.set()
    assert done.wait(30)
    own.close()


def test_a_thread_that_the_system_has_no_room_for_is_started_later(monkeypatch):
    own, done, start = crew(), threading.Event(), threading.Thread.start

    def refuse(thread):
        if thread.name.startswith("hanging-"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        own.put(done.set, "the first")
        own.look()
        assert not done.is_set()
    own.look()
    assert done.wait(30)
    own.close()


def test_a_job_that_raises_is_told_of_and_the_next_is_done():
    errors, end = [], threading.Event()
    own = crew(errors=errors)
    own.put(lambda: 1 / 0, "a fault")
    own.put(end.set, "the end")
    assert end.wait(30)
    assert [type(error) for error in errors] == [ZeroDivisionError]
    own.close()


def test_after_the_end_nothing_is_done():
    own, done = crew(), []
    own.close()
    own.put(lambda: done.append(1), "too late")
    assert done == []
