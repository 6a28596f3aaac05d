from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from roost.engine.candidates.bipartite import Matching


@st.composite
def graphs(draw):
    providers = draw(st.integers(1, 4))
    options = draw(st.lists(st.integers(0, 2**providers - 1), min_size=1, max_size=5))
    return options, draw(st.lists(st.integers(0, 2), min_size=providers, max_size=providers))


def all_matchings(options, places):
    choices = [[at for at in range(len(places)) if mask >> at & 1] for mask in options]
    return {each for each in product(*choices) if all(each.count(at) <= room for at, room in enumerate(places))}


@given(graphs())
def test_a_perfect_matching_is_found_if_there_is_one(graph):
    options, places = graph
    assignment = Matching(options=options, places=places).find_perfect()
    expected = all_matchings(options, places)
    assert (tuple(assignment) in expected) if assignment is not None else not expected


@given(graphs(), st.randoms(use_true_random=False))
def test_force_succeeds_exactly_where_a_matching_exists(graph, random):
    options, places = graph
    matching, expected = Matching(options=options, places=places), all_matchings(options, places)
    assignment = matching.find_perfect()
    for member in range(len(options) if assignment is not None else 0):
        prefix = tuple(assignment[:member])
        possible = {each[member] for each in expected if each[:member] == prefix}
        results = {at: matching.force(assignment, member, at) for at in range(len(places)) if options[member] >> at & 1}
        assert {at for at, each in results.items() if each is not None} == possible
        for at, each in results.items():
            assert each is None or (tuple(each) in expected and each[: member + 1] == [*prefix, at])
        assignment = results[random.choice(sorted(possible))]
