"""The benchmark of opening runs at a small scale. Speed is not tested."""

from bench import opening


def test_phases_and_figures_of_a_small_fleet(capsys):
    opening.main(200, stores=("sqlite",), decisions=20)
    output = capsys.readouterr().out
    assert output.startswith("200 hosts on sqlite\n")
    for figure in ("read_cpu_s", "settle_cpu_s", "open_cpu_s", "resident_per_100k_mib", "cpu_p99_ms_50_shapes"):
        assert f"  {figure:40}" in output
