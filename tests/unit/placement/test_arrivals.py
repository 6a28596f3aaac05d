import queue
import sys
import threading
import time

import pytest

from roost.placement.task_queue import Arrivals


def test_tasks_are_taken_in_order_of_arrival():
    arrivals = Arrivals()
    for task in "abc":
        arrivals.put(task)
    assert len(arrivals) == 3
    assert [arrivals.get(), arrivals.get(0.0), arrivals.get(1.0)] == ["a", "b", "c"]
    assert len(arrivals) == 0


@pytest.mark.parametrize("at_most_s", [-1.0, 0.0, 1e-9, 0.01])
def test_get_from_an_empty_queue_raises_empty(at_most_s):
    with pytest.raises(queue.Empty):
        Arrivals().get(at_most_s)


def test_new_task_ends_the_wait():
    arrivals = Arrivals()
    timer = threading.Timer(0.05, arrivals.put, ["late"])
    timer.start()
    start_s = time.monotonic()
    assert arrivals.get(30.0) == "late"
    assert time.monotonic() - start_s < 25
    timer.join()


def test_short_wait_ends_also_among_busy_threads():
    """With ``queue.SimpleQueue`` this thread sometimes waits for ever, whatever the limit."""
    is_over = threading.Event()

    def wait():
        for _ in range(5_000):
            for at_most_s in (1e-9, 1e-6):
                with pytest.raises(queue.Empty):
                    Arrivals().get(at_most_s)
        is_over.set()

    def keep_busy():
        while not is_over.is_set():
            sum(range(100))

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for each in (wait, keep_busy, keep_busy):
            threading.Thread(target=each, daemon=True).start()
        assert is_over.wait(60)
    finally:
        is_over.set()
        sys.setswitchinterval(interval_s)


def test_tasks_of_several_threads_all_arrive_in_order():
    arrivals = Arrivals()
    per_thread = 5_000

    def put_tasks(name):
        for number in range(per_thread):
            arrivals.put((name, number))

    threads = [threading.Thread(target=put_tasks, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    tasks = []
    while len(tasks) < 4 * per_thread:
        if len(tasks) % 3:
            tasks.append(arrivals.get(30.0))
            continue
        try:
            tasks.append(arrivals.get(1e-6))
        except queue.Empty:
            continue
    for thread in threads:
        thread.join()
    assert {name: [number for each, number in tasks if each == name] for name in range(4)} == {
        name: list(range(per_thread)) for name in range(4)
    }
