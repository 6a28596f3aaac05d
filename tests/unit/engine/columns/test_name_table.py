"""The rows of names equal those of a plain dictionary of sorted lists."""

from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns.name_table import RowsByName

NAMES = st.lists(st.sampled_from("abc"), max_size=12)


def contents(rows):
    return {name: list(found) for name, found in rows.items()}


@given(NAMES, NAMES, st.lists(st.integers(0, 23)), st.data())
def test_rows_equal_sorted_lists(filled, added, removed, data):
    rows, plain, name_of = RowsByName(), {}, dict(enumerate([*filled, *added]))
    rows.fill(filled, range(len(filled)))
    later = [row for row in name_of if row >= len(filled)]
    for row in data.draw(st.permutations(later)):
        rows.add(name_of[row], row)
    for row, name in name_of.items():
        plain.setdefault(name, []).append(row)
    assert contents(rows) == plain
    copy = rows.fork()
    for row in dict.fromkeys(removed):
        if row in name_of:
            rows.remove(name_of[row], row)
            plain[name_of[row]].remove(row)
    assert contents(rows) == {name: left for name, left in plain.items() if left}
    assert sum(map(len, copy.values())) == len(name_of)
    assert ("a" in rows, len(rows), rows.get("d", ())) == (bool(plain.get("a")), len(contents(rows)), ())
