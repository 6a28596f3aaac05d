from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.columns.apply import apply, occupy, undo_claim
from roost.engine.columns.empty_fleet import empty_fleet
from roost.model.writes import CLASS_BITS
from tests.support.fleets.state_histories import History, new_state


def scan(state):
    """Return the consumers of each provider and project, from a scan of all holders."""
    of_provider, of_project = {}, {}
    for holder in state.holders_by_id.values():
        of_project.setdefault(holder.project_id, set()).add(holder.id)
        for inventory_id, _ in holder.takes:
            of_provider.setdefault(inventory_id >> CLASS_BITS, set()).add(holder.id)
    return of_provider, of_project


def read_directory(state):
    """Return the consumers of each provider and project, from the directory."""
    directory = state.consumers()
    of_provider = {number: {each.id for each in directory.find_by_provider(number)} for number in state.providers.ids}
    of_project = {name: {each.id for each in directory.find_by_project(name)} for name in ("p", "q", "nobody")}
    return tuple({key: ids for key, ids in ids_of.items() if ids} for ids_of in (of_provider, of_project))


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 60))
def test_directory_equals_a_scan_of_all_consumers(seed, before, after):
    state = new_state()
    history = History(state, Random(seed))
    history.run(before)
    assert state.consumer_index is None
    assert read_directory(state) == scan(state)
    history.run(after)
    assert read_directory(state) == scan(state)
    claim = history.claim()
    if claim is not None:
        occupy(state, claim)
        assert read_directory(state) == scan(state)
        undo_claim(state, claim, was_counted=False)
        assert read_directory(state) == scan(state)


def test_forks_have_separate_directories():
    state = new_state()
    history = History(state, Random(7))
    history.run(60)
    assert any(read_directory(state))
    fork = state.fork()
    assert read_directory(empty_fleet(state)) == ({}, {})
    apply(fork, history.release())
    assert read_directory(fork) == scan(fork) != read_directory(state) == scan(state)
