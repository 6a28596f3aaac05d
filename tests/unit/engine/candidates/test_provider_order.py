"""The search with a preference among providers."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.candidates.provider_order import ProviderOrder
from roost.engine.candidates.search import search
from tests.reference.candidates import Group, Node, Query, Stock
from tests.support.fleets.forests import CLASSES, compiled_of, forests_with_queries, result_of, state_of

CLASS = CLASSES[0]


def devices(*free):
    """Return a tree with one device per free amount, on children d0, d1 and so on of the root."""
    nodes = {"root": Node()}
    for number, amount in enumerate(free):
        nodes[f"d{number}"] = Node(parent="root", stocks={CLASS: Stock(total=1000, used=1000 - amount)})
    return nodes


def order_by(costs):
    """Return an order by these costs of provider rows, whatever the class and the amount."""
    return ProviderOrder(lambda _class_id, _amount: costs)


def first_providers(forest, costs, *amounts, policy="isolate"):
    """Return the provider of each group, in order, with these costs by name."""
    state = state_of(forest)
    groups = tuple(Group(suffix=f"_{number}", resources={CLASS: amount}) for number, amount in enumerate(amounts))
    order = order_by({row: costs[name] for row, name in enumerate(state.providers.names) if name in costs})
    found = next(search(state, compiled_of(state, Query(groups=groups, policy=policy)), provider_order=order))
    return [state.providers.names[providers[0]] for _, providers in found.mappings]


def test_a_group_takes_the_cheapest_provider_that_fits():
    forest = devices(500, 300, 800, 400)
    assert first_providers(forest, {"d0": 5, "d1": 1, "d2": 7, "d3": 2}, 400) == ["d3"]


def test_of_equal_costs_the_first_provider_is_taken():
    assert first_providers(devices(100, 500, 500), {"d0": 1, "d1": 1, "d2": 1}, 400) == ["d1"]


def test_isolated_groups_take_the_cheapest_providers_in_turn():
    forest = devices(1000, 1000, 1000, 1000)
    assert first_providers(forest, {"d0": 9, "d1": 3, "d2": 1, "d3": 2}, 1000, 1000, 1000) == ["d2", "d3", "d1"]


def test_a_provider_without_a_cost_comes_last():
    assert first_providers(devices(500, 500), {"d1": 10**9}, 400) == ["d1"]


@settings(max_examples=300)
@given(forests_with_queries(), st.integers(0, 2**32))
def test_an_order_changes_neither_the_set_nor_the_number_of_candidates(question, seed):
    forest, query = question
    state = state_of(forest)
    compiled = compiled_of(state, query)
    random = Random(seed)
    costs = {row: random.randrange(3) for row in range(len(forest)) if random.random() < 0.8}
    found = [result_of(state, each) for each in search(state, compiled, provider_order=order_by(costs))]
    plain = [result_of(state, each) for each in search(state, compiled)]
    assert set(found) == set(plain)
    assert len(found) == len(plain)


@settings(max_examples=300)
@given(forests_with_queries())
def test_equal_costs_keep_the_order(question):
    forest, query = question
    state = state_of(forest)
    compiled = compiled_of(state, query)
    order = order_by(dict.fromkeys(range(len(forest)), 1.0))
    assert list(search(state, compiled, provider_order=order)) == list(search(state, compiled))
