from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.columns.apply import apply, occupy, undo_claim
from roost.engine.columns.empty_fleet import empty_fleet
from roost.model.writes import CLASS_BITS
from tests.support.fleets.state_histories import History, new_state


def scanned(state):
    """Say what a look at every consumer says."""
    of_provider, of_project = {}, {}
    for holder in state.holders_by_id.values():
        of_project.setdefault(holder.project_id, set()).add(holder.id)
        for inventory_id, _ in holder.takes:
            of_provider.setdefault(inventory_id >> CLASS_BITS, set()).add(holder.id)
    return of_provider, of_project


def listed(state):
    """Say what the directory says of every provider and project that it could know."""
    directory = state.consumers()
    of_provider = {number: {each.id for each in directory.find_by_provider(number)} for number in state.providers.ids}
    of_project = {name: {each.id for each in directory.find_by_project(name)} for name in ("p", "q", "nobody")}
    return tuple({key: ids for key, ids in found.items() if ids} for found in (of_provider, of_project))


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 60))
def test_the_directory_says_what_a_look_at_every_consumer_says(seed, before, after):
    state = new_state()
    history = History(state, Random(seed))
    history.run(before)
    assert state.consumer_index is None
    assert listed(state) == scanned(state)
    history.run(after)
    assert listed(state) == scanned(state)
    claim = history.claim()
    if claim is not None:
        occupy(state, claim)
        assert listed(state) == scanned(state)
        undo_claim(state, claim, was_counted=False)
        assert listed(state) == scanned(state)


def test_copies_have_directories_of_their_own():
    state = new_state()
    history = History(state, Random(7))
    history.run(60)
    assert any(listed(state))
    fork = state.fork()
    assert listed(empty_fleet(state)) == ({}, {})
    apply(fork, history.release())
    assert listed(fork) == scanned(fork) != listed(state) == scanned(state)
