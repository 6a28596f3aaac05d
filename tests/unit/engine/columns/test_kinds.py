from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns.interning import InternedColumn
from roost.model.host import HostFacts

CHANGES = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["QEMU", "xen", "", "1"])), max_size=40)


def told(column):
    """Give what each host says, in row order."""
    values, codes = column.view
    return [values[code] for code in codes.tolist()]


@given(CHANGES)
def test_each_host_says_what_it_said_last(changes):
    said = []
    column = InternedColumn(lambda facts: (facts.hypervisor_type,), ())
    for at, name in changes:
        row = min(at, len(said))
        said[row : row + 1] = [(name,)]
        column.put(row, HostFacts(hypervisor_type=name))
    assert told(column) == said
    values, _ = column.view
    assert len(values) == len(set(values))


def test_what_is_equal_and_not_the_same_is_told_apart():
    column = InternedColumn(
        lambda facts: facts.stats["x"], [HostFacts(stats={"x": each}) for each in (1, True, 1.0, "1")]
    )
    assert [type(each) for each in told(column)] == [int, bool, float, str]


def test_a_copy_goes_its_own_way():
    column = InternedColumn(lambda facts: facts.rack, [HostFacts(rack="a")])
    copy = column.fork()
    copy.put(0, HostFacts(rack="b"))
    copy.put(1, HostFacts(rack="a"))
    assert told(column) == ["a"]
    assert told(copy) == ["b", "a"]


def test_it_is_worn_when_most_it_knows_is_of_the_past():
    column = InternedColumn(lambda facts: facts.rack, [HostFacts(rack="a")])
    for number in range(100):
        column.put(0, HostFacts(rack=str(number)))
    assert column.is_stale
    assert not InternedColumn(lambda facts: facts.rack, [HostFacts(rack="a")]).is_stale
