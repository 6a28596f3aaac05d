import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.errors import BadFile
from roost.simulator.traces.table import Row, read_table


@pytest.mark.parametrize(
    ("content", "problem", "line"),
    [
        (b"", "is empty", None),
        (b"\n\n", "is empty", None),
        (b"a,b\n", "has a header and no rows", None),
        (b"a,a\n1,2\n", "column a is repeated", 1),
        (b"a,b\n1,2\n\xff,2\n", "is not UTF-8", 3),
        (b"a,b\n1,2,3\n", "3 cells where the header has 2", 2),
        (b'a,b\n"1"2,3\n', "is not CSV", 2),
    ],
)
def test_malformed_file_is_named_with_the_line(tmp_path, content, problem, line):
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=problem) as caught:
        read_table(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_unreadable_file_is_named(tmp_path):
    for path in (tmp_path / "absent.csv", tmp_path):
        with pytest.raises(BadFile, match="cannot be read"):
            read_table(path)


def test_byte_order_mark_blank_lines_and_spaces_are_ignored(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_bytes("\ufeffa, b\r\n\r\n 1 ,2.0\r\n".encode())
    table = read_table(path)
    assert table.header == ("a", "b")
    assert [(row.line, row.integer("a"), row.integer("b")) for row in table.rows] == [(3, 1, 2)]


@given(st.text(max_size=12))
def test_any_cell_is_a_number_in_bounds_or_an_error_with_its_place(cell):
    row = Row("trace.csv", 7, {"a": 0}, [cell])
    for reading in (lambda: row.integer("a", maximum=100), lambda: row.number("a")):
        try:
            value = reading()
        except BadFile as error:
            place = error.line, error.column
        else:
            place = (7, "a") if value < float("inf") else "out of bounds"
        assert place == (7, "a")
