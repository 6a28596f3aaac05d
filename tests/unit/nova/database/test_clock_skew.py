"""Clocks of database servers."""

from roost.nova.database.clock_skew import clock_skew
from tests.support.servers.nova_database import SkewedClock


def test_each_database_has_its_skew(nova, cell, options):
    nova.add_cell(nova.cells[cell], name="silent", mapping_url="sqlite:////no/file")
    api, first, second = clock_skew(options, SkewedClock(-100))
    assert (api.database, first.database) == ("the API database", "the database of cell cell1")
    assert 90 < api.skew_s < 110
    assert 90 < first.skew_s < 110
    assert second.skew_s is None
    assert second.problem == "the database of cell silent cannot be read: /no/file is not a file"
