"""The drains under way, as the map shows them."""

from types import SimpleNamespace

import msgspec
import pytest

from roost.app.monitoring.open_drains import OpenDrains
from roost.errors import Unavailable
from roost.machine import SystemClock
from roost.model.work.change_memory import Drain
from tests.support.conductors.work_rows import operation


class Reader:
    """A reader of drains."""

    def __init__(self):
        self.rows, self.is_broken, self.is_closed, self.reads = [], False, False, 0

    def open_operations_of(self, kind):
        """See ``WorkReader.open_operations_of``."""
        assert kind == "drain"
        self.reads += 1
        if self.is_broken:
            raise Unavailable("the database is gone")
        return self.rows

    def close(self):
        """See ``WorkReader.close``."""
        self.is_closed = True


def drain(number, host):
    return operation(number, kind="drain", body=msgspec.msgpack.encode(Drain(host=host, instances=(), at_once=1)))


@pytest.fixture
def world():
    """A reader, a clock and the drains."""
    reader, times = Reader(), SimpleNamespace(now_s=0.0)
    serving = SimpleNamespace(run=lambda act: act(SimpleNamespace(store=SimpleNamespace(work_reader=lambda _: reader))))
    return reader, times, OpenDrains(serving, clock=SystemClock(), now_s=lambda: times.now_s)


def test_drains_are_named_in_lower_case_and_read_once_a_second(world):
    reader, times, drains = world
    reader.rows = [drain(1, "Host-1"), drain(2, "host-2")]
    assert drains.read() == {"host-1", "host-2"}
    reader.rows = []
    assert (drains.read(), reader.reads) == ({"host-1", "host-2"}, 1)
    times.now_s = 1.0
    assert drains.read() == set()


def test_drains_stay_known_during_an_outage(world):
    reader, times, drains = world
    reader.rows = [drain(1, "host-1")]
    drains.read()
    reader.is_broken, times.now_s = True, 2.0
    assert drains.read() == {"host-1"}
    reader.is_broken, reader.rows, times.now_s = False, [], 4.0
    assert drains.read() == set()
    drains.close()
    assert reader.is_closed
