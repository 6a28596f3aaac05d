import sys

import msgspec
import pytest

from roost.errors import BadFile, Unavailable
from roost.simulator.curves import build_curve
from roost.simulator.plot_style import prepare
from roost.simulator.plots import draw
from roost.simulator.replay import replay
from roost.simulator.traces.formats import open_workload
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.unit.simulator.first_fit import FirstFit
from tests.unit.simulator.pictures import size_of
from tests.unit.simulator.reports import REPORT
from tests.unit.simulator.traces.files import NODES, PODS, write

pytestmark = pytest.mark.long

ALL = {"requests.png", "utilisation.png", "fragmentation.png", "latency.png", "hosts.png"}


def replay_report(seed, **recipe):
    return replay(generate(Recipe(**{"hosts": 5, "requests": 90, "seed": seed, **recipe}), Options()), FirstFit())


def test_every_plot_is_a_complete_png_of_the_expected_size(tmp_path):
    reports = {name: [replay_report(seed, mix="few") for seed in (1, 2)] for name in ("spread", "pack")}
    paths = draw(reports, tmp_path / "plots", title="generated")
    assert {path.name for path in paths} == ALL
    assert {path.name for path in (tmp_path / "plots").iterdir()} == ALL
    assert {size_of(path) for path in paths} == {(1200, 800)}


def test_single_run_is_drawn_with_gpus_on_some_hosts_only(tmp_path):
    workload = open_workload(write(tmp_path, nodes=NODES, pods=PODS), Options(has_departures=False))
    paths = draw({"only": [replay(workload, FirstFit(), chunk=1)]}, tmp_path, title="pods")
    assert {path.name for path in paths} == ALL


def test_more_policies_than_colours_are_drawn(tmp_path):
    reports = {f"policy-{number}": [replay_report(number, requests=20)] for number in range(9)}
    assert {path.name for path in draw(reports, tmp_path, title="many")} == ALL


def test_the_same_reports_give_the_same_files(tmp_path):
    reports = {"a": [replay_report(1)]}
    first, second = ([path.read_bytes() for path in draw(reports, tmp_path / each, title="t")] for each in "ab")
    assert first == second


def test_report_without_a_series_gives_no_plot(tmp_path):
    assert draw({"old": [REPORT]}, tmp_path, title="old") == []
    bare = msgspec.structs.replace(replay_report(1), host_use=None)
    assert "hosts.png" not in {path.name for path in draw({"a": [bare]}, tmp_path, title="bare")}


def test_missing_matplotlib_is_an_error_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        Unavailable, match=r"^plots need matplotlib: install .* extra plot, as in .*; or leave --plot out$"
    ):
        prepare(tmp_path / "plots")
    assert not (tmp_path / "plots").exists()


def test_unwritable_folder_is_an_error_before_any_work(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "plots"):
        with pytest.raises(BadFile, match="cannot be written"):
            prepare(folder)
    prepare(tmp_path / "new" / "plots")
    assert list((tmp_path / "new" / "plots").iterdir()) == []


def test_curve_has_mean_and_spread_where_all_runs_have_values():
    curve = build_curve([([1, 3, 5], [10.0, None, 30.0]), ([1, 2, 5, 9], [20.0, 20.0, 50.0, 0.0])])
    assert curve.requests.tolist() == [1, 5]
    assert (curve.mean.tolist(), curve.minimum.tolist(), curve.maximum.tolist()) == ([15, 40], [10, 30], [20, 50])
    assert build_curve([([1, 9], [0.0, 8.0]), ([1, 5], [4.0, 4.0])]).requests.tolist() == [1]
    assert build_curve([([1], [None])]) is None
    assert build_curve([]) is None
