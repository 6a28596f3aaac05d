"""The simulation finds bugs: each planted bug breaks an invariant with one of a few seeds."""

import pytest

from roost.placement.current import Current
from roost.simulator.cluster.environment.rare_faults import LOSS_SEEDS, RESTORE_SEEDS
from roost.simulator.cluster.seed_runs import run_seed
from roost.simulator.cluster.simulation import NO_UNEXPECTED_ERROR
from roost.store import dump
from tests.simulation.plants import KINDS_OF, PLANTS

pytestmark = pytest.mark.long

_SEEDS = range(150)
# Seeds that currently find a bug quickly; they run first.
_KNOWN_SEEDS = {
    "missing_undo": [6],
    "concurrent_operations": [6],
    "missing_claim_on_alternate": [4],
    "unchecked_undo": [18],
    "early_revert": [74],
    "early_offload": [130],
    "early_confirm": [10],
    "answer_to_a_withdrawn_order": [3],
    "missing_release_of_cancelled_move": [2],
    "missing_return_fence": [4],
    "repeated_answer": [3],
    "unclean_return": [1],
    "single_discard": [298],
    "discard_of_running_guest": [20124],
    "unnoticed_loss": [LOSS_SEEDS[0], LOSS_SEEDS[1]],  # Only in these seeds hosts lose guests.
    "unqueried_home": [RESTORE_SEEDS[5]],  # Only in these seeds a backup is restored.
    "missing_release_of_failed_host": [25],  # This run never becomes idle, so it takes the maximum time of a seed.
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_found(name, monkeypatch):
    # The seeds above were found without counting tasks as I/O operations, which changes the course of events.
    monkeypatch.setattr(Current, "_with_tasks", lambda _self, items: list(items))
    monkeypatch.setattr(dump, "IO_TASKS", frozenset())
    PLANTS[name](monkeypatch)
    results = (run_seed(seed, kinds=KINDS_OF[name]) for seed in (*_KNOWN_SEEDS.get(name, ()), *_SEEDS))
    found = next((result for result in results if result.invariant not in {"", NO_UNEXPECTED_ERROR}), None)
    assert found is not None, f"{name} was not found with {len(_SEEDS)} seeds"
    assert found.last
