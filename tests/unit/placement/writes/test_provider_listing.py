from random import Random

from hypothesis import given
from hypothesis import strategies as st

from roost.placement.writes.providers import find_matching
from tests.reference.candidates import Query, is_member, root
from tests.support.fleets.forests import FEATURES, query_of, random_forest, random_group, state_of

FILTERS = frozenset({*FEATURES} - {"suffixed", "same_subtree", "isolate", "root"})


@given(st.integers(1, 12), st.integers(0, 2**32))
def test_provider_is_listed_if_it_alone_satisfies_the_group(size, seed):
    random = Random(seed)
    forest = random_forest(random, size, FILTERS)
    group = random_group(random, forest, list(forest), suffix="", features=FILTERS, empty=False)
    if random.random() < 0.3:
        group = type(group)(**{**vars(group), "resources": {}})
    state = state_of(forest)
    filter_group = query_of(Query((group, type(group)("_", {"VCPU": 1})))).groups[0]
    names = {state.providers.names[row] for row in find_matching(state, filter_group)}
    trees = {root(forest, name) for name in forest if name == group.in_tree}
    assert names == {
        name
        for name, node in forest.items()
        if all(each in node.stocks and node.stocks[each].serves(amount) for each, amount in group.resources.items())
        and all(node.traits & traits for traits in group.required)
        and not node.traits & group.forbidden
        and is_member(node, group.member_of)
        and not node.aggregates & group.forbidden_aggregates
        and (group.in_tree is None or root(forest, name) in trees)
    }
