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
    matched = Matching(options=options, places=places).find_perfect()
    wanted = all_matchings(options, places)
    assert (tuple(matched) in wanted) if matched is not None else not wanted


@given(graphs(), st.randoms(use_true_random=False))
def test_forcing_member_after_member_never_meets_a_dead_end(graph, random):
    options, places = graph
    matching, wanted = Matching(options=options, places=places), all_matchings(options, places)
    matched = matching.find_perfect()
    for member in range(len(options) if matched is not None else 0):
        fixed = tuple(matched[:member])
        open_to = {each[member] for each in wanted if each[:member] == fixed}
        tried = {at: matching.force(matched, member, at) for at in range(len(places)) if options[member] >> at & 1}
        assert {at for at, each in tried.items() if each is not None} == open_to
        for at, each in tried.items():
            assert each is None or (tuple(each) in wanted and each[: member + 1] == [*fixed, at])
        matched = tried[random.choice(sorted(open_to))]
