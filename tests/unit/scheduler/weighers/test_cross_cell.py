import pytest

from roost.model.host import HostFacts
from roost.model.request import Destination
from roost.scheduler.weighers.cross_cell import CrossCell, CrossCellOptions
from tests.support.fleets.fleets import fleet, hosts_of, spec

RULE = CrossCell(CrossCellOptions())


@pytest.mark.shows("S106")
def test_the_cell_the_instance_comes_from_is_better_than_any_other():
    view = hosts_of(fleet(*[HostFacts(cell=cell) for cell in ("a", "b", "")]))
    wanted = spec(destination=Destination(cell="b", allow_cross_cell_move=True))
    assert RULE.raw(view, wanted).tolist() == [-1.0, 1.0, -1.0]


def test_only_moves_that_may_leave_the_cell_concern_it():
    assert not RULE.concerns(spec())
    assert not RULE.concerns(spec(destination=Destination(cell="b")))
    assert RULE.concerns(spec(destination=Destination(cell="b", allow_cross_cell_move=True)))
