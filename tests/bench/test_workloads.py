"""Every workload runs at a small scale: counts and reports. Speed is not tested."""

import math

import msgspec
import pytest

from bench import run, table, workloads
from bench.databases import Databases, Skipped
from tests.support.databases import postgres

pytestmark = pytest.mark.long

SMALL = workloads.load(small=True)
FULL = workloads.load()


@pytest.fixture
def databases(request, tmp_path):
    """The databases of one workload; a server only if it needs one."""
    url = ""
    if request.node.callspec.params["workload"].store == "postgresql":
        if postgres.binaries() is None:
            pytest.skip("no PostgreSQL")
        url = request.getfixturevalue("postgres_server")
    databases = Databases(tmp_path, postgresql=url)
    yield databases
    databases.close()


@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.name)
def test_workload_reports_the_figures_of_its_budget(workload, databases):
    figures = run.KINDS[workload.kind](workload, databases)
    assert set(workload.budget) <= set(figures)
    assert all(math.isfinite(value) and value >= 0 for value in figures.values())
    assert all(value > 0 for name, value in figures.items() if name.endswith(("p50_ms", "_per_s", "_mib")))
    assert figures.get("refused_share", 0) < 0.5
    assert ("refused_share" in figures) <= (workload.fleet == "trees")


def test_workload_names_are_unique():
    assert len({workload.name for workload in FULL}) == len(FULL)


def test_small_workload_differs_in_size_only():
    for small, full in zip(SMALL, FULL, strict=True):
        assert (small.name, small.kind, small.budget, small.fleet) == (full.name, full.kind, full.budget, full.fleet)
        assert small.requests <= full.requests
        assert small.hosts <= full.hosts


def test_requests_have_the_number_of_shapes_of_the_workload():
    from bench.fleets import requests_of

    workload = next(each for each in FULL if each.name == "decide-50-shapes")
    requests = requests_of(workload)
    assert len(requests) == workload.warm_up + workload.requests
    assert len({msgspec.json.encode(request) for request in requests}) == 50


def test_flattened_fleet_offers_the_same_vcpus_as_its_trees():
    from bench.fleets import fleet_of

    flat, trees = fleet_of("mixed", 60), fleet_of("trees", 60)
    assert all(spec.parent_uuid is None for spec in flat.providers)
    assert any(spec.parent_uuid is not None for spec in trees.providers)
    assert _total(flat, "VCPU") == _total(trees, "VCPU")
    assert _total(flat, "PGPU") == 0 < _total(trees, "PGPU")


def _total(fleet, resource_class):
    offers = (spec.inventories.get(resource_class) for spec in fleet.providers)
    return sum(offer.total for offer in offers if offer is not None)


def line(**values):
    return table.Line(**({"row": "row", "figure": "p50_ms", "best": 1.0, "median": 2.0} | values))


def test_verdict_compares_budget_with_best_and_median():
    assert [line(budget=budget).verdict for budget in (2.0, 1.0, 0.5, None)] == ["yes", "at best", "no", ""]
    rates = [line(figure="claims_per_s", best=2.0, median=1.0, budget=budget).verdict for budget in (1.0, 2.0, 3.0)]
    assert rates == ["yes", "at best", "no"]


def test_comparison_scales_by_the_speed_of_the_machine():
    slow, fast = line(best=4.0, median=4.0), line(best=2.0, median=2.0)
    rates = [line(figure="claims_per_s", best=value, median=value) for value in (10.0, 20.0)]
    assert table.comparison([fast], [slow], speed=1.0)[0].split()[2:] == ["0.50", "0.50"]
    assert table.comparison([rates[1]], [rates[0]], speed=1.0)[0].split()[2:] == ["2.00", "2.00"]
    # Half the speed on a machine of half the speed is no change.
    assert table.comparison([slow], [fast], speed=2.0)[0].split()[2:] == ["1.00", "1.00"]
    assert table.comparison([rates[0]], [rates[1]], speed=2.0)[0].split()[2:] == ["1.00", "1.00"]


def test_run_prints_machine_and_table_and_writes_json(tmp_path, capsys, monkeypatch):
    json_file = tmp_path / "run.json"
    arguments = ["run", "--small", "--only", "devices-nine", "--json", str(json_file), "--folder", str(tmp_path)]
    monkeypatch.setattr("sys.argv", arguments)
    run.main()
    output = capsys.readouterr().out
    assert "flush (fdatasync" in output
    assert "calibration loop" in output
    assert "devices-nine-refused     p50_ms" in output
    result = msgspec.json.decode(json_file.read_bytes(), type=run.Run)
    assert [each.row for each in result.lines][:1] == ["devices-nine-refused"]
    monkeypatch.setattr("sys.argv", [*arguments[:4], "--folder", str(tmp_path), "--against", str(json_file)])
    run.main()
    assert "in units of commit" in capsys.readouterr().out


def test_workload_that_cannot_run_is_skipped_and_named(tmp_path, monkeypatch):
    def skip(*_):
        raise Skipped("no such thing here")

    monkeypatch.setitem(run.KINDS, "claims", skip)
    progress = []
    result = run.measure(
        [each for each in SMALL if each.kind == "claims"][:1], Databases(tmp_path), show=progress.append
    )
    assert result.lines == []
    assert result.skipped == {"store-full-g1": "no such thing here"}
    assert progress[-1].endswith("skipped: no such thing here")


def test_unknown_row_is_refused():
    with pytest.raises(SystemExit, match="no workload is named nothing-like-it"):
        run.select(FULL, ["nothing-like-it"])
    assert [each.name for each in run.select(FULL, ["decide-1"])] == [
        "decide-1-shape",
        "decide-100k",
        "decide-100k-50-shapes",
    ]
