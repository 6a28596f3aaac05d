from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from roost.engine.candidates.flat_index import FlatIndex
from roost.engine.candidates.search import search
from roost.engine.columns.apply import apply
from roost.model.names import SHARING_TRAIT
from roost.model.writes import PutGroup
from tests.support.fleets.forests import FEATURES, compiled_of, random_forest, random_query, state_of, uuid_of
from tests.support.fleets.state_histories import History

PLAIN = frozenset(FEATURES) - {"suffixed", "same_subtree", "isolate", "one_provider_a_tree"}


@given(st.integers(1, 60), st.integers(0, 2**32))
def test_flat_index_equals_the_search_after_claims_and_releases(size, seed):
    random = Random(seed)
    forest = {
        name: replace(node, parent=None, traits=node.traits - {SHARING_TRAIT})
        for name, node in random_forest(random, size, PLAIN).items()
    }
    query = random_query(random, forest, PLAIN)
    state = state_of(forest)
    compiled, history = compiled_of(state, query), History(state, random, first=1_000)
    index, epoch, before = FlatIndex(), state.changes.epoch, None
    for _ in range(8):
        version = index.version
        rows = index.find_rows(state, compiled)
        assert rows == [each.anchor for each in search(state, compiled)]
        assert (before == rows) == (version == index.version) or before is None
        before = list(rows)
        for _ in range(random.choice((0, 1, 3, 100))):
            write = random.choice((history.claim, history.release))()
            if write is not None:
                apply(state, write)
    assert state.changes.epoch == epoch


@given(st.integers(1, 8), st.integers(0, 2**32))
def test_flat_index_returns_none_for_trees_sharing_or_suffixes(size, seed):
    random = Random(seed)
    features = frozenset(FEATURES)
    forest = random_forest(random, size, features)
    query = random_query(random, forest, features)
    state = state_of(forest)
    has_more = any(node.parent is not None or SHARING_TRAIT in node.traits for node in forest.values()) or any(
        group.suffix for group in query.groups
    )
    assert (FlatIndex().find_rows(state, compiled_of(state, query)) is None) == has_more


@given(st.integers(0, 2**32))
def test_flat_index_follows_all_other_changes(seed):
    random = Random(seed)
    forest = random_forest(random, 5, PLAIN)
    query = random_query(random, forest, PLAIN)
    state = state_of(forest)
    for number in (1, 2):
        apply(state, PutGroup(number, uuid_of(f"group-{number}").bytes, "g", "anti-affinity", 1))
    index, history = FlatIndex(), History(state, random, first=1_000)
    for _ in range(20):
        compiled = compiled_of(state, query)
        rows = index.find_rows(state, compiled)
        if rows is not None:
            assert rows == [each.anchor for each in search(state, compiled)]
        history.run(random.choice((1, 3)))
