import pytest

from roost.model.evidence.decision import Decision, HostScore, Scale

SCALES = [Scale("ram", 0.0, 100.0, 2.0), Scale("disk", 5.0, 5.0, -1.0), Scale("io_ops", 3.0, 3.0, 1.0)]


@pytest.mark.parametrize("multipliers", [[], [0.5, -1.0, 1.0]])
def test_table_has_one_cell_per_weigher_in_scale_order(multipliers):
    best = [HostScore("a", 1.0, [50.0, 5.0], multipliers), HostScore("b", 0.0, [0.0, 5.0], multipliers)]
    decision = Decision(uuid="", decided_at_s=0.0, outcome="granted", request_id=1, scales=SCALES, best=best)
    shares = multipliers or [2.0, -1.0, 1.0]
    table = {
        host: [(cell.weigher, cell.raw, cell.normalised, cell.multiplier, cell.contribution) for cell in cells]
        for host, cells in decision.table().items()
    }
    flat = [("disk", 5.0, 0.0, shares[1], 0.0), ("io_ops", 3.0, 0.0, shares[2], 0.0)]
    assert table == {
        "a": [("ram", 50.0, 0.5, shares[0], 0.5 * shares[0]), *flat],
        "b": [("ram", 0.0, 0.0, shares[0], 0.0), *flat],
    }


def test_decision_without_weighers_has_an_empty_table():
    decision = Decision(uuid="", decided_at_s=0.0, outcome="refused", request_id=1)
    assert decision.table() == {}
