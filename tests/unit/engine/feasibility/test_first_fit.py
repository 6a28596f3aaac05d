"""The first candidate without a search equals that of the search."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.candidates.search import search
from roost.engine.feasibility.feasibility import Feasibility
from roost.engine.feasibility.first_fit import first_fit
from roost.engine.feasibility.query_checks import compile_feasibility
from tests.reference.candidates import Group, Node, Query, Stock
from tests.support.fleets.forests import CLASSES, compiled_of, forests_with_queries, put_hosts, query_of, state_of


def fit_of(forest, query, random):
    state = state_of(forest)
    put_hosts(state, random)
    compiled = compiled_of(state, query)
    return state, compile_feasibility(state, query_of(query), compiled)


def compare(state, fit: Feasibility, order) -> int:
    """Assert that both agree on every host that passes; return the number of hosts without a search."""
    count = 0
    for host in range(len(state.hosts)):
        if fit.judge_host(state, host) < len(fit):
            continue
        first = first_fit(state, fit, host, provider_order=order)
        if first is None:
            continue
        root = state.hosts.provider_row.each[host]
        found = next(search(state, fit.compiled, anchors=(root,), limit=1, provider_order=order))
        assert tuple(sorted(first.takes)) == found.takes
        assert first.mappings == found.mappings
        count += 1
    return count


@settings(max_examples=400)
@given(forests_with_queries(), st.integers(0, 2**32), st.booleans())
def test_first_fit_equals_the_search(question, seed, has_costs):
    random = Random(seed)
    forest, query = question
    query = Query(**{**vars(query), "one_provider_a_tree": False})
    costs = {row: random.randrange(3) for row in range(len(forest)) if random.random() < 0.8}
    order = ProviderOrder(lambda _class_id, _amount: costs) if has_costs else None
    compare(*fit_of(forest, query, random), order)


def test_groups_with_suffixes_need_no_search():
    device = CLASSES[3]
    children = {f"d{at}": Node(parent="root", stocks={device: Stock(total=4)}) for at in range(3)}
    forest = {"root": Node(stocks={"VCPU": Stock(total=8)}), **children}
    groups = (
        Group(resources={"VCPU": 2}),
        Group(suffix="_a", resources={device: 3}),
        Group(suffix="_b", resources={device: 3}),
    )
    question = forest, Query(groups=groups, policy="isolate"), Random(1)
    state, fit = fit_of(*question)
    assert compare(state, fit, None) == len(state.hosts) == 1
    assert compare(state, fit, ProviderOrder(lambda _class_id, _amount: {1: 3, 2: 2, 3: 1})) == 1
