"""The worker pool: job order, hung threads, errors and shutdown."""

import threading

from roost.compute.agent.worker_pool import WorkerPool


class ManualClock:
    """A clock that a test sets."""

    now_s = 0.0

    def __call__(self):
        """Return the time."""
        return self.now_s


def pool(clock=None, *, count=1, threads_max=3, errors=None, hung=None):
    """Return a pool whose jobs count as hung after ten seconds."""
    on_error, on_hang = ([].append if each is None else each.append for each in (errors, hung))
    now_s = clock or ManualClock()
    return WorkerPool(
        "hanging",
        count=count,
        hang_after_s=10.0,
        threads_max=threads_max,
        now_s=now_s,
        on_error=on_error,
        on_hang=on_hang,
    )


def test_one_thread_runs_jobs_in_order():
    results, end, workers = [], threading.Event(), pool()
    for number in range(5):
        workers.put(lambda number=number: results.append(number), "a job")
    workers.put(end.set, "the end")
    assert end.wait(30)
    assert results == [0, 1, 2, 3, 4]
    workers.close()


def test_hung_threads_are_replaced_up_to_the_limit():
    clock = ManualClock()
    hung, release, done = [], threading.Event(), threading.Event()
    workers = pool(clock, threads_max=2, hung=hung)

    def hang(started):
        started.set()
        release.wait(30)

    first, second = threading.Event(), threading.Event()
    workers.put(lambda: hang(first), "the first")
    assert first.wait(30)
    workers.put(lambda: hang(second), "the second")
    workers.check_hangs()
    assert (second.is_set(), hung) == (False, [])
    clock.now_s = 10.0
    workers.check_hangs()
    workers.check_hangs()
    assert hung == ["the first"]
    assert second.wait(30)
    clock.now_s = 20.0
    workers.put(done.set, "the third")
    workers.check_hangs()
    assert len([each for each in threading.enumerate() if each.name.startswith("hanging-")]) == 2
    assert hung == ["the first", "the second"]
    release.set()
    assert done.wait(30)
    workers.close()


def test_thread_that_cannot_start_is_retried(monkeypatch):
    workers, done, start = pool(), threading.Event(), threading.Thread.start

    def refuse(thread):
        if thread.name.startswith("hanging-"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        workers.put(done.set, "the first")
        workers.check_hangs()
        assert not done.is_set()
    workers.check_hangs()
    assert done.wait(30)
    workers.close()


def test_job_error_is_reported_and_the_next_job_runs():
    errors, end = [], threading.Event()
    workers = pool(errors=errors)
    workers.put(lambda: 1 / 0, "a fault")
    workers.put(end.set, "the end")
    assert end.wait(30)
    assert [type(error) for error in errors] == [ZeroDivisionError]
    workers.close()


def test_closed_pool_runs_no_jobs():
    workers, results = pool(), []
    workers.close()
    workers.put(lambda: results.append(1), "too late")
    assert results == []
