from fnmatch import fnmatch

import pytest

from roost.conductor.operation.events import Transition
from roost.simulator.cluster.processes import ALLOWED
from roost.simulator.cluster.unreached_transitions import UNREACHED, group_by_reason, reason_of


@pytest.mark.parametrize("pattern", UNREACHED)
def test_pattern_matches_a_transition_of_a_table(pattern):
    assert any(fnmatch(" ".join(transition), pattern) for transition in ALLOWED)


def test_transitions_are_grouped_by_reason():
    out_of_reach = Transition("shelve", "save", "DONE", "back")
    reachable = Transition("spawn", "spawn", "DONE", "end")
    assert group_by_reason([out_of_reach, reachable]) == {
        "": ["spawn spawn DONE end"],
        reason_of(out_of_reach): ["shelve save DONE back"],
    }
    assert reason_of(reachable) == ""
