from roost.errors import Conflict, StoreBroken
from roost.placement.last_success import LastSuccess
from tests.support.fleets.worlds import FixedClock


def test_only_outages_are_problems_and_a_success_ends_them():
    clock = FixedClock()
    record = LastSuccess(clock=clock.now_s)
    record.note(Conflict("lost a race"))
    assert record.problem == ""
    record.note(StoreBroken("the disk is full"))
    clock.time_s += 5
    assert (record.problem, record.age_s) == ("the disk is full", 5)
    record.note(None)
    assert (record.problem, record.age_s) == ("", 0)
