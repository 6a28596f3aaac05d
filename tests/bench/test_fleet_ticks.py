"""The benchmark of snapshots runs at a small scale. Speed is not tested."""

from bench import fleet_ticks


def test_snapshots_of_a_small_fleet(capsys, monkeypatch):
    monkeypatch.setattr(fleet_ticks, "_TICKS", 2)
    monkeypatch.setattr(fleet_ticks, "_CHANGED", 5)
    fleet_ticks.main("mixed", 50, 5)
    output = capsys.readouterr().out
    assert output.startswith("50 hosts (mixed), first snapshot: ")
    assert "share of a processor: " in output
