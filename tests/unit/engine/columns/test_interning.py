from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns.interning import InternedColumn
from roost.model.host import HostFacts

CHANGES = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["QEMU", "xen", "", "1"])), max_size=40)


def decode(column):
    """Return the value of each host, in row order."""
    values, codes = column.view
    return [values[code] for code in codes.tolist()]


@given(CHANGES)
def test_column_has_the_last_value_of_each_host(changes):
    expected = []
    column = InternedColumn(lambda facts: (facts.hypervisor_type,), ())
    for at, name in changes:
        row = min(at, len(expected))
        expected[row : row + 1] = [(name,)]
        column.put(row, HostFacts(hypervisor_type=name))
    assert decode(column) == expected
    values, _ = column.view
    assert len(values) == len(set(values))


def test_equal_values_of_different_types_stay_distinct():
    column = InternedColumn(
        lambda facts: facts.stats["x"], [HostFacts(stats={"x": each}) for each in (1, True, 1.0, "1")]
    )
    assert [type(each) for each in decode(column)] == [int, bool, float, str]


def test_fork_and_origin_are_independent():
    column = InternedColumn(lambda facts: facts.rack, [HostFacts(rack="a")])
    copy = column.fork()
    copy.put(0, HostFacts(rack="b"))
    copy.put(1, HostFacts(rack="a"))
    assert decode(column) == ["a"]
    assert decode(copy) == ["b", "a"]


def test_column_is_stale_when_most_of_its_values_are_unused():
    column = InternedColumn(lambda facts: facts.rack, [HostFacts(rack="a")])
    for number in range(100):
        column.put(0, HostFacts(rack=str(number)))
    assert column.is_stale
    assert not InternedColumn(lambda facts: facts.rack, [HostFacts(rack="a")]).is_stale
