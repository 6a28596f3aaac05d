import pytest

from roost.simulator.lab.gpu_experiment import Conditions, run_policy
from roost.store.memory_store import MemoryStore
from tests.unit.simulator.lab.gpu_files import mixed

MIXED = mixed(1, sizes=[200, 330, 500, 700])


def test_departures_free_gpus():
    stays = run_policy(MIXED, "bestfit", 7, conditions=Conditions())
    leaves = run_policy(MIXED, "bestfit", 7, conditions=Conditions(has_departures=True))
    assert leaves.arrived > 1.8 * stays.arrived
    assert leaves.arrived - leaves.refused > 1.2 * (stays.arrived - stays.refused)
    assert leaves.load[-1] >= 125
    assert max(leaves.load) <= 140, "a pod that has left no longer counts"
    assert max(leaves.allocated) <= 100.0


@pytest.mark.parametrize("has_departures", [False, True])
@pytest.mark.parametrize("policy", ["random", "gpuclustering", "bestfit", "fgd", "gpu_value"])
def test_a_restart_changes_no_result(policy, has_departures):
    workload = mixed(3, sizes=[200, 330, 450, 700], nodes=40, pods=400)
    conditions = Conditions(has_departures=has_departures, has_restart=True)
    usual = run_policy(workload, policy, 5, conditions=Conditions(has_departures=has_departures))
    assert run_policy(workload, policy, 5, conditions=conditions) == usual
    assert usual.refused > 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_requests_before_a_restart_still_count_in_the_next_document(seed):
    workload = mixed(seed, sizes=[180, 330, 460, 620, 810], nodes=60, pods=480)
    later = mixed(seed + 100, sizes=[110, 540, 890], nodes=60, pods=480)
    usual = run_policy(workload, "gpu_value", 5, conditions=Conditions(later=later))
    again = run_policy(workload, "gpu_value", 5, conditions=Conditions(later=later, has_restart=True))
    assert again == usual


def test_restart_loads_the_stored_rows_half_way(monkeypatch):
    stores, positions = [], []
    load = MemoryStore.load

    def note_load(store):
        loaded = load(store)
        stores.append(store)
        positions.append(loaded.position)
        return loaded

    monkeypatch.setattr(MemoryStore, "load", note_load)
    run_policy(MIXED, "gpu_value", 7, conditions=Conditions(has_restart=True))
    assert len(set(map(id, stores))) == 1
    first, again = positions
    assert first == 0
    assert 0.5 < again / load(stores[0]).position < 0.9, "commits before the restart, and after it"
