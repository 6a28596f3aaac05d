import threading
from concurrent.futures import Future

from roost.placement.current import Current
from roost.placement.serving import Serving
from roost.store.memory import MemoryStore


def test_whoever_was_let_in_while_it_stops_is_answered():
    serving = Serving(Current(MemoryStore()))
    stopping = threading.Thread(target=serving.stop)

    class Limit:
        """Let another thread stop it while somebody stands in the door."""

        def __le__(self, count):
            stopping.start()
            stopping.join(timeout=0.2)
            return False

    serving._queue_max = Limit()
    outcome = Future()
    serving.submit(lambda _current: "well", outcome)
    assert outcome.result(timeout=30) == "well"
    stopping.join()
