import json
from pathlib import Path

import pytest

from roost.errors import BadFile, BadRequest
from roost.settings import read_settings
from roost.simulator import runs
from roost.simulator.runs import (
    Policy,
    Run,
    Source,
    execute,
    load_workload,
    read_result,
    trace_source,
    write_atomically,
)
from roost.simulator.traces.generated_workload import Recipe
from roost.simulator.workload import Options
from tests.unit.simulator.comparisons import PACK, generated_source
from tests.unit.simulator.traces.files import NODES, PODS, VMS, write


def build_run(folder="results", *, source=None, settings="", name="a", seed=1, data=None):
    policy = Policy(name=name, settings=read_settings(settings))
    return Run(source=source or generated_source(), policy=policy, seed=seed, results=str(folder), data=data)


def vm_source(folder, text=VMS, *, chunk=64, **options):
    folder.mkdir(exist_ok=True)
    return trace_source(write(folder, vms=text), options=Options(hosts=("2x200c/28m",), **options), chunk=chunk)


def test_fingerprint_covers_every_input_of_a_result(tmp_path, monkeypatch):
    trace = vm_source(tmp_path / "a")
    different = [
        build_run(),
        build_run(seed=2),
        build_run(settings=PACK),
        build_run(source=Source(recipe=Recipe(hosts=6, requests=40, mix="few"))),
        build_run(data="here"),
        build_run(data="here", settings='[store]\nsynchronous = "NORMAL"\n'),
        build_run(source=trace),
        build_run(source=trace, seed=None),
        build_run(source=vm_source(tmp_path / "b", VMS + "10,71,8,7,0,2,3\n")),
        build_run(source=vm_source(tmp_path / "a", limit=2)),
        build_run(source=vm_source(tmp_path / "a", chunk=1)),
    ]
    prints = {run.fingerprint() for run in different}
    assert len(prints) == len(different)
    monkeypatch.setattr(runs, "__version__", "99")
    assert build_run().fingerprint() not in prints


def test_fingerprint_ignores_inputs_without_effect_on_the_result(tmp_path):
    assert build_run(name="a").fingerprint() == build_run("elsewhere", name="b").fingerprint()
    # The recipe's own seed is replaced by that of the run.
    other = Source(recipe=Recipe(hosts=5, requests=40, mix="few", seed=7))
    assert build_run(source=other).fingerprint() == build_run().fingerprint()
    here, there = vm_source(tmp_path / "here"), vm_source(tmp_path / "there")
    assert build_run(source=here).fingerprint() == build_run(source=there).fingerprint()
    files = write(tmp_path, nodes=NODES, pods=PODS)
    orders = [trace_source(paths, options=Options(), chunk=64) for paths in (files, files[::-1])]
    assert len({build_run(source=source).fingerprint() for source in orders}) == 1
    # A database in service is never used, whatever its address.
    assert build_run(settings='[store]\nurl = "postgresql://u:secret@h/d"\n').fingerprint() == build_run().fingerprint()


def test_result_is_found_only_by_its_own_run(tmp_path):
    run = build_run(tmp_path)
    assert read_result(run) is None
    execute(run)
    assert read_result(run).requests == 40
    assert read_result(build_run(tmp_path, seed=2)) is None
    assert [path.name for path in tmp_path.iterdir()] == [f"{run.fingerprint()}.json"]


@pytest.mark.parametrize("text", ["", "{", '{"kind": "else"}', "[]", "\udcff", "null"])
def test_malformed_result_file_is_named_and_left_unchanged(tmp_path, text):
    run = build_run(tmp_path)
    run.result_path.write_text(text, errors="surrogateescape")
    before = run.result_path.read_bytes()
    with pytest.raises(BadFile, match=r"[.]json: is not the result of a, seed 1: move it away") as caught:
        read_result(run)
    assert "\n" not in str(caught.value)
    assert run.result_path.read_bytes() == before


def test_result_of_another_run_is_refused(tmp_path):
    run, other = build_run(tmp_path), build_run(tmp_path, seed=2)
    execute(other)
    other.result_path.rename(run.result_path)
    with pytest.raises(BadFile, match="is not the result of a, seed 1"):
        read_result(run)
    run.result_path.unlink()
    run.result_path.mkdir()
    with pytest.raises(BadFile, match="cannot be read: Is a directory"):
        read_result(run)


def test_trace_seed_shuffles_only_the_hosts(tmp_path):
    source = trace_source(write(tmp_path, vms=VMS), options=Options(hosts=("30x200c/28m",)), chunk=64)
    as_it_stands, first, again, second = (load_workload(source, seed) for seed in (None, 1, 1, 2))
    names = [[host.host for host in each.fleet.hosts] for each in (as_it_stands, first, second)]
    assert names[0] == [f"host-{number}" for number in range(30)]
    assert len({tuple(each) for each in names}) == 3
    assert {tuple(sorted(each)) for each in names} == {tuple(sorted(names[0]))}
    assert first == again
    assert first.events == as_it_stands.events
    assert [provider.name for provider in first.fleet.providers] == names[1]


def test_parents_stay_before_their_children(tmp_path):
    nodes = NODES + "".join(f"m{number},1000,1000,2,T4\n" for number in range(20))
    source = trace_source(write(tmp_path, nodes=nodes, pods=PODS), options=Options(), chunk=64)
    fleet = load_workload(source, 3).fleet
    seen = set()
    for provider in fleet.providers:
        assert provider.parent_uuid is None or provider.parent_uuid in seen
        seen.add(provider.uuid)
    assert seen == {provider.uuid for provider in load_workload(source, None).fleet.providers}


def test_changed_absent_or_repeated_trace_file_is_refused(tmp_path):
    source = vm_source(tmp_path / "a")
    (tmp_path / "a" / "vms.csv").write_text(VMS + "10,71,8,7,0,2,3\n")
    with pytest.raises(BadFile, match="has changed since the comparison began"):
        load_workload(source, 1)
    with pytest.raises(BadFile, match="cannot be read"):
        trace_source([tmp_path / "absent.csv"], options=Options(), chunk=64)
    with pytest.raises(BadRequest, match="named twice"):
        trace_source([tmp_path / "a" / "vms.csv"] * 2, options=Options(), chunk=64)


def test_each_run_has_its_own_database(tmp_path):
    run = build_run(tmp_path / "results", name="old/pack", data=str(tmp_path / "data"))
    unfinished = tmp_path / "data" / "old-pack-seed1.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "roost.db").write_text("half")
    execute(run)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["old-pack-seed1"]
    database = tmp_path / "data" / "old-pack-seed1" / "roost.db"
    before = database.read_bytes()
    with pytest.raises(BadFile, match="already exists, with the database of another run"):
        execute(run)
    assert database.read_bytes() == before


def test_atomic_write_leaves_a_complete_file_or_none(tmp_path):
    write_atomically(tmp_path / "new" / "a.json", b"1")
    write_atomically(tmp_path / "new" / "a.json", b"2")
    assert (tmp_path / "new" / "a.json").read_bytes() == b"2"
    with pytest.raises(BadFile, match="cannot be written"):
        write_atomically(tmp_path / "new" / "a.json" / "b", b"3")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadFile, match="Is a directory"):
        write_atomically(tmp_path / "folder", b"4")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.json", "folder", "new"]


def test_result_names_its_policy_and_seed(tmp_path):
    run = build_run(tmp_path, name="pack", seed=4)
    execute(run)
    result = json.loads(Path(run.result_path).read_text())
    assert (result["kind"], result["policy"], result["seed"]) == ("roost replay result", "pack", 4)
    assert result["report"]["version"] == 1


def test_time_limit_of_searches_does_not_end_a_run(tmp_path):
    limited = build_run(tmp_path, settings="[scheduler]\nsearch_budget_s = 1e-9\n")
    execute(limited)
    unlimited = build_run(tmp_path)
    execute(unlimited)
    placed = [read_result(run).placed for run in (limited, unlimited)]
    assert placed[0] == placed[1] > 0
