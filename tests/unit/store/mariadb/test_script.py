import pytest

from roost.store.mariadb.script import fill_in, insertions, key_condition, literal, row_text, row_texts, subquery
from roost.store.rules.schema import SEQUENCE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, "5"),
        (True, "1"),
        (None, "NULL"),
        ("a'b\\c\0", "'a''b\\\\c\\0'"),
        (b"", "x''"),
        (b"\x00\xff", "x'00ff'"),
        (0.1, "0.1e0"),
        (1e300, "1e+300"),
        (float("-inf"), "-1.7976931348623157e+308"),
        ([1, "a"], "(1, 'a')"),
        ([], "(NULL)"),
    ],
)
def test_values_become_literals(value, text):
    assert literal(value) == text


def test_each_mark_gets_its_value():
    assert fill_in("a = ? AND b IN ?", (1, ["?"])) == "a = 1 AND b IN ('?')"
    with pytest.raises(ValueError):
        fill_in("a = ?", (1, 2))


@pytest.mark.parametrize(
    "column",
    [
        (1, -2, 3, 2**62),
        (True, False, True, 5),
        (None, 1, 2, 3),
        (b"", b"\x00\xff", b"'", b"%s"),
        ("a", "%s", "", "é"),
        ("a", "b'", "\\", "\0"),
        (0.5, -0.0, 12.0, 1796046434.8452961),
        (0.5, 1e300, 5e-324, 1.0),
        (0.5, float("inf"), float("-inf"), 1.0),
        (0.5, 1, "x", b"x"),
    ],
    ids=["int", "bool", "null", "bytes", "text", "escapes", "float", "exponent", "infinite", "mixed"],
)
def test_rows_converted_by_column_equal_single_rows(column):
    rows = [(at, value) for at, value in enumerate(column)]
    assert row_texts(rows) == [row_text(row) for row in rows]


def test_rows_of_different_lengths_are_an_error():
    with pytest.raises(ValueError):
        row_texts([(1,), (1,), (1,), (1, 2)])


def test_rows_become_a_subquery_with_named_columns():
    assert subquery("id added", [(1, 2)]) == "(SELECT 1 AS id, 2 AS added)"
    assert subquery("id added", [(1, 2), (3, 4)]) == "(SELECT 1 AS id, 2 AS added UNION ALL VALUES (3, 4))"


def test_keys_become_a_condition():
    assert key_condition(("id",), [(1,), (2,)]) == "id IN (1, 2)"
    assert key_condition(("a", "b"), [(1, 2)]) == "(a, b) IN ((1, 2))"
    assert key_condition(("a", "b"), []) == "(a, b) IN ((NULL, NULL))"


def test_many_rows_are_inserted_by_statements_of_limited_size(monkeypatch):
    monkeypatch.setattr("roost.store.mariadb.script._STATEMENT_BYTES", 20)
    texts = list(insertions(SEQUENCE, [(f"kind {number}", number) for number in range(5)]))
    assert len(texts) == 3
    assert texts[0] == "INSERT INTO sequence (kind, next) VALUES ('kind 0', 0), ('kind 1', 1)"
