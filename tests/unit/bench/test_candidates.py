from bench import candidates


def test_candidate_benchmark_runs_on_a_small_fleet(capsys):
    candidates.main(hosts=20, repeats=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 15
    assert "20 flat hosts, limit 10" in lines[1]
