import queue
import sys
import threading
import time

import pytest

from roost.placement.task_queue import Arrivals


def test_tasks_are_taken_in_the_order_in_which_they_came():
    arrivals = Arrivals()
    for task in "abc":
        arrivals.put(task)
    assert len(arrivals) == 3
    assert [arrivals.get(), arrivals.get(0.0), arrivals.get(1.0)] == ["a", "b", "c"]
    assert len(arrivals) == 0


@pytest.mark.parametrize("at_most_s", [-1.0, 0.0, 1e-9, 0.01])
def test_whoever_waits_for_nothing_is_told_so(at_most_s):
    with pytest.raises(queue.Empty):
        Arrivals().get(at_most_s)


def test_what_comes_meanwhile_ends_the_wait():
    arrivals = Arrivals()
    timer = threading.Timer(0.05, arrivals.put, ["late"])
    timer.start()
    begun_s = time.monotonic()
    assert arrivals.get(30.0) == "late"
    assert time.monotonic() - begun_s < 25
    timer.join()


def test_a_short_wait_ends_also_where_threads_are_held_up_in_it():
    """With ``queue.SimpleQueue`` this thread waits for ever now and then, whichever limit it gives."""
    is_over = threading.Event()

    def wait():
        for _ in range(5_000):
            for at_most_s in (1e-9, 1e-6):
                with pytest.raises(queue.Empty):
                    Arrivals().get(at_most_s)
        is_over.set()

    def others():
        while not is_over.is_set():
            sum(range(100))

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for each in (wait, others, others):
            threading.Thread(target=each, daemon=True).start()
        assert is_over.wait(60)
    finally:
        is_over.set()
        sys.setswitchinterval(interval_s)


def test_nothing_that_several_threads_bring_is_missed():
    arrivals = Arrivals()
    per_thread = 5_000

    def bring(name):
        for number in range(per_thread):
            arrivals.put((name, number))

    bringing = [threading.Thread(target=bring, args=(name,)) for name in range(4)]
    for thread in bringing:
        thread.start()
    found = []
    while len(found) < 4 * per_thread:
        if len(found) % 3:
            found.append(arrivals.get(30.0))
            continue
        try:
            found.append(arrivals.get(1e-6))
        except queue.Empty:
            continue
    for thread in bringing:
        thread.join()
    assert {name: [number for each, number in found if each == name] for name in range(4)} == {
        name: list(range(per_thread)) for name in range(4)
    }
