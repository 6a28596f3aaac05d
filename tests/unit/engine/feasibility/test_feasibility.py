from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.candidates.search import has_candidate
from roost.engine.columns.apply import apply
from roost.engine.columns.state import State
from roost.engine.feasibility.feasibility import Feasibility
from roost.engine.feasibility.query_checks import compile_feasibility
from roost.model.writes import CLASS_BITS, Claim, ConsumerRow, Release
from tests.reference.candidates import SHARES, Group, Node, Query, Stock
from tests.support.fleets.forests import compiled_of, forests_with_queries, put_hosts, query_of, state_of, uuid_of

_NO_FACTS = msgspec.Raw(msgspec.msgpack.encode({}))


class AllHosts(Random):
    """A random source for which ``put_hosts`` puts a host on every root."""

    def choice(self, seq):
        """Return the first element."""
        return seq[0]


def claim_anything(state: State, random: Random, number: int) -> None:
    """Claim amounts of random inventories, whether they fit or not."""
    amounts = [
        (state.providers.ids[row] << CLASS_BITS | class_id, random.choice((1, 1, 2, 5)))
        for class_id, columns in state.classes.items()
        for row in columns.holders
        if random.random() < 0.2
    ]
    consumer = ConsumerRow(number, uuid_of(f"claim-{number}").bytes, "", "")
    apply(state, Claim([consumer], [(number, inventory_id, amount) for inventory_id, amount in amounts]))


def verdicts_of_all(state: State, fit: Feasibility) -> list[bool]:
    out = [np.zeros(len(state.hosts), dtype=np.bool_) for _ in range(len(fit))]
    passing = state.hosts.alive.view.copy()
    for mask in fit.judge_all(state, out, {}):
        passing &= mask
    return passing.tolist()


def first_refusals(state: State, fit: Feasibility) -> list[int]:
    """Return the number of the first check that refuses each host, from the masks."""
    out = [np.zeros(len(state.hosts), dtype=np.bool_) for _ in range(len(fit))]
    masks = fit.judge_all(state, out, {})
    return [
        next((at for at, mask in enumerate(masks) if not mask[host]), len(masks)) for host in range(len(state.hosts))
    ]


def assert_agreement(state: State, query) -> None:
    """Assert that the masks of all hosts, the check of each host and the search agree."""
    compiled = compiled_of(state, query)
    fit = compile_feasibility(state, query_of(query), compiled)
    roots = state.hosts.provider_row.view.tolist()
    expected = [has_candidate(state, compiled, row) for row in roots]
    names = [state.providers.names[row] for row in roots]
    assert dict(zip(names, verdicts_of_all(state, fit), strict=True)) == dict(zip(names, expected, strict=True))
    assert [fit.judge_host(state, host) for host in range(len(roots))] == first_refusals(state, fit)
    assert len(fit.reasons) == len(fit)


def compare(forest, query, seed: int) -> None:
    random = Random(seed)
    state = state_of(forest)
    put_hosts(state, random)
    assert_agreement(state, query)
    consumers = []
    for number in range(1000, 1006):
        if consumers and random.random() < 0.4:
            apply(state, Release([consumers.pop(random.randrange(len(consumers)))], []))
        else:
            claim_anything(state, random, number)
            consumers.append(number)
        assert_agreement(state, query)


def without_version_rule(question):
    """Return the question without the one-provider rule of old Placement versions; requests never have it."""
    forest, query = question
    return forest, query.__class__(**{**vars(query), "one_provider_a_tree": False})


def test_requested_tree_may_serve_the_trees_it_shares_with():
    lender = Node(stocks={"CUSTOM_DEVICE": Stock(4)}, traits=frozenset({SHARES}), aggregates=frozenset({"agg-1"}))
    borrower = Node(stocks={"VCPU": Stock(4)}, aggregates=frozenset({"agg-1"}))
    stranger = Node(stocks={"VCPU": Stock(4)})
    device = Group(suffix="_1", resources={"CUSTOM_DEVICE": 1}, in_tree="lender")
    query = Query(groups=(Group(resources={"VCPU": 1}), device))
    state = state_of({"lender": lender, "borrower": borrower, "stranger": stranger})
    put_hosts(state, AllHosts())
    assert_agreement(state, query)
    fit = compile_feasibility(state, query_of(query), compiled_of(state, query))
    verdicts = dict(zip((state.hosts.names[row] for row in range(3)), verdicts_of_all(state, fit), strict=True))
    assert verdicts == {"lender": False, "borrower": True, "stranger": False}


def test_requested_tree_does_not_lend_unshared_inventory():
    forest = {
        "lender": Node(stocks={"DISK_GB": Stock(4)}, traits=frozenset({SHARES}), aggregates=frozenset({"agg-1"})),
        "kept": Node(parent="lender", stocks={"CUSTOM_DEVICE": Stock(4)}),
        "borrower": Node(stocks={"VCPU": Stock(4), "CUSTOM_DEVICE": Stock(4)}, aggregates=frozenset({"agg-1"})),
    }
    device = Group(suffix="_1", resources={"CUSTOM_DEVICE": 1}, in_tree="lender")
    state = state_of(forest)
    put_hosts(state, AllHosts())
    assert_agreement(state, Query(groups=(Group(resources={"VCPU": 1}), device)))


def test_overused_provider_takes_no_slots_from_the_others():
    root_and_two = {
        "root": Node(stocks={"VCPU": Stock(1)}),
        "a": Node(parent="root", stocks={"CUSTOM_DEVICE": Stock(1, used=3)}),
        "b": Node(parent="root", stocks={"CUSTOM_DEVICE": Stock(1)}),
        "c": Node(parent="root", stocks={"CUSTOM_DEVICE": Stock(1)}),
    }
    devices = tuple(Group(suffix=suffix, resources={"CUSTOM_DEVICE": 1}) for suffix in ("_1", "_2"))
    state = state_of(root_and_two)
    put_hosts(state, AllHosts())
    assert_agreement(state, Query(groups=(Group(resources={"VCPU": 1}), *devices), policy="isolate"))


@settings(max_examples=400)
@given(forests_with_queries().map(without_version_rule), st.integers(0, 2**32))
def test_a_host_passes_if_and_only_if_its_tree_has_a_candidate(question, seed):
    compare(*question, seed)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(forests_with_queries(most=9).map(without_version_rule), st.integers(0, 2**32))
def test_a_host_passes_if_and_only_if_its_tree_has_a_candidate_in_long_runs(question, seed):
    compare(*question, seed)
