import numpy as np
import pytest

from roost.engine.columns.state import State
from roost.engine.fill.state_fill import StateFill, fill
from roost.engine.fill.table_columns import HostColumns, LabelColumns, ProviderColumns

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
