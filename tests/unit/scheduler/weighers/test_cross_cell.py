import pytest

from roost.model.host import HostFacts
from roost.model.request import Destination
from roost.scheduler.weighers.cross_cell import CrossCell, CrossCellOptions
from tests.support.fleets.fleets import fleet, host_view, spec

RULE = CrossCell(CrossCellOptions())


@pytest.mark.shows("S106")
def test_source_cell_weighs_more_than_other_cells():
    view = host_view(fleet(*[HostFacts(cell=cell) for cell in ("a", "b", "")]))
    request = spec(destination=Destination(cell="b", allow_cross_cell_move=True))
    assert RULE.raw(view, request).tolist() == [-1.0, 1.0, -1.0]


def test_concerns_only_moves_that_may_leave_the_cell():
    assert not RULE.concerns(spec())
    assert not RULE.concerns(spec(destination=Destination(cell="b")))
    assert RULE.concerns(spec(destination=Destination(cell="b", allow_cross_cell_move=True)))
