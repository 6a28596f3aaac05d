"""Values and guards of the scripts that commit batches on MariaDB."""

from contextlib import closing

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from roost.model.writes import InventoryRow, Item, PutInventories, PutSymbol
from roost.store.mariadb import link
from roost.store.mariadb.script import insertions, subquery
from roost.store.mariadb.store import MariaStore
from roost.store.rules.schema import Table
from tests.contract.stores import CPU, MEMORY, VCPU, claim, commit, evidence, inventory, item, provider, release, state

MEMORY_MB = PutSymbol("resource_class", MEMORY, "MEMORY_MB")
VALUES = Table("some_values", ("number", "amount", "words", "body"), ("bigint", "float8", "text", "bytea"), ("number",))
# A table without a key returns its rows in the order of their insertion.
_CREATE = """
CREATE TEMPORARY TABLE some_values (
    number BIGINT, amount DOUBLE NOT NULL, words MEDIUMTEXT NOT NULL, body MEDIUMBLOB NOT NULL)
CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"""
BIG = 2**60

rows_of_values = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"])) | st.text("'\\\"\0\n%?{}é😀"),
        st.binary() | st.text("'\\\0%").map(str.encode),
    ),
    min_size=1,
    max_size=12,
)
AWKWARD = [
    (number, amount, words, bytes(range(256)))
    for number in (-(2**63), 2**63 - 1)
    for amount in (0.1, -0.0, 5e-324, 1.7976931348623157e308, 1e22, float(2**53))
    for words in ("", "it's \\ \0 100% ?", "é 😀")
]


@pytest.fixture
def connection(mariadb_url):
    with closing(link.connect(mariadb_url)) as opened:
        opened.execute(_CREATE)
        yield opened


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=rows_of_values)
@example(rows=AWKWARD)
@example(rows=AWKWARD[:1])
def test_any_values_are_stored(connection, rows):
    connection.execute("DELETE FROM some_values")
    connection.run(insertions(VALUES, rows))
    assert list(connection.execute("SELECT number, amount, words, body FROM some_values").rows) == rows


@pytest.mark.parametrize("count", [1, 8, 9, 100])
def test_place_in_a_list_is_exact_for_big_numbers(connection, count):
    numbers = [BIG + at for at in range(count)]
    listed = ", ".join(map(str, numbers))
    rows = subquery("number", [(number,) for number in numbers])
    found = connection.execute(
        f"SELECT CAST(ELT(INTERVAL(number, {listed}), {listed}) AS SIGNED) - number FROM {rows} AS w"
    ).rows
    assert found == ((0,),) * count


@pytest.fixture
def store(mariadb_url, monkeypatch):
    """Return a store with three providers that writes only whole batches; other commits raise an error."""

    def refuse(*_):
        raise AssertionError("a guard did not pass")

    with closing(MariaStore(mariadb_url)) as opened:
        inventories = [InventoryRow(CPU, 20, 4, 2, 12, 2, 1.5), InventoryRow(MEMORY, 20, 0, 1, 20, 1, 1.0)]
        assert commit(opened, item(VCPU, MEMORY_MB)) == [""]
        for number in (1, 2, 3):
            assert commit(opened, item(provider(number), PutInventories(number, 0, inventories))) == [""]
        monkeypatch.setattr(MariaStore, "_commit_judged", refuse)
        yield opened


def used(store):
    """Return the amounts in use and the generation by provider."""
    content = state(store)
    amounts = {}
    for _, number, amount in content.get("takes", []):
        amounts[number] = amounts.get(number, 0) + amount
    return amounts, {number: generation for _, number, generation in content["PutGeneration"]}


@pytest.mark.parametrize("rows_max", [900, 2, 1])
def test_batch_of_all_kinds_of_amounts_is_written_as_a_whole(store, rows_max, monkeypatch):
    monkeypatch.setattr("roost.store.mariadb.stock_update._ROWS_MAX", rows_max)
    old = claim(1, (inventory(1), 12), (inventory(1, MEMORY), 20))
    assert commit(store, item(old, rows=[evidence(1)])) == [""]
    batch = [
        item(release(old)),
        item(claim(2, (inventory(1), 10), (inventory(1, MEMORY), 7))),
        item(claim(3, (inventory(1), 12), (inventory(2, MEMORY), 20)), rows=[evidence(2)]),
        item(claim(4, (inventory(3), 2))),
    ]
    assert commit(store, *batch) == [""] * 4
    amounts, generations = used(store)
    assert amounts == {
        inventory(1): 22,
        inventory(1, MEMORY): 7,
        inventory(2, MEMORY): 20,
        inventory(3): 2,
    }
    assert generations == {1: 4, 2: 2, 3: 2}


@pytest.mark.parametrize("rows_max", [900, 2, 1])
@pytest.mark.parametrize(
    "takes",
    [
        [[(inventory(1), 12)], [(inventory(1), 12), (inventory(2), 2)], [(inventory(1), 2)]],
        [[(inventory(2), 14)]],
        [[(inventory(2), 1)]],
        [[(inventory(2), 3)]],
        [[(inventory(2), 2)], [(inventory(2), 3)]],
        [[(inventory(2), 1)], [(inventory(2), 3)]],
        [[(inventory(2), 14)], [(inventory(2), 2)]],
        [[(inventory(4), 2)]],
        [[(inventory(1, 0), 1)]],
        [[(inventory(1, 0), 1)], [(inventory(1), 2)]],
    ],
    ids=[
        "capacity",
        "maximum",
        "minimum",
        "step",
        "one step",
        "one minimum",
        "one maximum",
        "no inventory",
        "generation",
        "generation raised",
    ],
)
def test_guard_refuses_what_does_not_fit(store, takes, rows_max, monkeypatch):
    monkeypatch.setattr("roost.store.mariadb.stock_update._ROWS_MAX", rows_max)
    fitting = item(claim(1, (inventory(3), 2), (inventory(3, MEMORY), 20)))
    batch = [Item((claim(2 + at, *each),)) for at, each in enumerate(takes)]
    before = state(store)
    with pytest.raises(AssertionError, match="a guard did not pass"):
        store.commit([fitting, *batch])
    assert state(store) == before
    assert commit(store, fitting) == [""]
