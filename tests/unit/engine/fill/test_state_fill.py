import numpy as np
import pytest

from roost.engine.columns.state import State
from roost.engine.fill.state_fill import StateFill, fill
from roost.engine.fill.table_columns import ClaimColumns, HostColumns, LabelColumns, ProviderColumns

PROVIDERS = ProviderColumns([4, 9], [bytes(16), bytes([1] * 16)], ["a", "b"], [None, 4], [4, 4], [0, 0])


def test_rows_of_a_missing_provider_are_refused():
    with pytest.raises(KeyError, match="5"):
        fill(State(), [PROVIDERS, LabelColumns("traits", np.array([4, 5]), np.array([1, 1]))])
    with pytest.raises(KeyError, match="7"):
        fill(State(), [PROVIDERS, HostColumns([1], [7], ["h"], ["n"], [b"\x80"], [0])])


def test_only_an_empty_state_is_filled():
    state = State()
    fill(state, [PROVIDERS])
    assert state.providers.rows_of_tree(0) == [0, 1]
    with pytest.raises(AssertionError, match="empty"):
        StateFill(state)


def test_equal_facts_and_labels_are_one_object():
    state = State()
    labels = LabelColumns("traits", np.array([4, 4, 9, 9]), np.array([1, 2, 1, 2]))
    hosts = HostColumns([1, 2], [4, 9], ["h", "i"], ["h", "i"], [b"\x80", b"\x80"], [0, 0])
    fill(state, [PROVIDERS, labels, hosts])
    assert state.traits.of_row[0] is state.traits.of_row[1]
    assert state.hosts.facts[0] is state.hosts.facts[1]


def test_equal_takes_and_projects_are_one_object():
    state = State()
    consumers = ((1, 2), (b"a", b"b"), ("".join("pq"), "".join("pq")), ("u", "u"), (0, 0), (1, 1))
    takes = ((1, 2), (4 << 16 | 1, 4 << 16 | 1), (3, 3))
    fill(state, [PROVIDERS, ClaimColumns(consumers, takes, ((),) * 7, ())])
    first, second = state.holders_by_id.values()
    assert first.takes[0] is second.takes[0]
    assert first.project_id is second.project_id
    assert state.inventory(1).used.view.tolist() == [6, 0]


def test_an_instance_on_a_missing_host_is_refused():
    consumers = ((1,), (b"a",), ("p",), ("u",), (0,), (1,))
    instances = ((1,), (5,), (7,), (0,), (0,), (0,), (0,))
    with pytest.raises(KeyError, match="5"):
        fill(State(), [PROVIDERS, ClaimColumns(consumers, ((), (), ()), instances, [False])])
