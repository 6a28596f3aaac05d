"""Clocks of database servers."""

from roost.machine import SystemClock
from roost.nova.database.clock_skew import clock_skew


class LateClock:
    """A clock behind the real one."""

    def __init__(self, real):
        self.real = real

    def now_s(self):
        """Return seconds since the epoch."""
        return self.real.now_s() - 100


def test_each_database_has_its_skew(nova, cell, options):
    nova.add_cell(nova.cells[cell], name="silent", mapping_url="sqlite:////no/file")
    api, first, second = clock_skew(options, LateClock(SystemClock()))
    assert (api.database, first.database) == ("the API database", "the database of cell cell1")
    assert 90 < api.skew_s < 110
    assert 90 < first.skew_s < 110
    assert second.skew_s is None
    assert second.problem == "the database of cell silent cannot be read: /no/file is not a file"
