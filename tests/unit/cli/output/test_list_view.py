import click
import pytest

from roost.cli.output.list_view import Column, ListView, field, time_field, value_text

HOSTS = ListView(
    nouns="hosts",
    columns=(
        field("name"),
        field("vcpus", head="VCPU"),
        time_field("heard", head="last contact"),
        field("tags", kind="prose"),
        Column(name="text", value=lambda row: row["vcpus"], text=lambda row: f"{row['vcpus']} of 9", shown="tables"),
        field("uuid", shown="wide"),
    ),
)
ROWS = [
    {"name": "host-10", "vcpus": 4000, "heard_at_s": 0.0, "tags": {"a": "b"}, "uuid": "u1"},
    {"name": "host-2", "vcpus": None, "heard_at_s": None, "tags": {}, "uuid": "u2"},
    {"name": "host-1", "vcpus": 8, "heard_at_s": 86_400.0, "tags": {"a": "x, y"}, "uuid": "u3"},
]


def names(rows):
    return [row["name"] for row in rows]


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ([], ["host-10", "host-2", "host-1"]),
        (["name"], ["host-1", "host-2", "host-10"]),
        (["-name"], ["host-10", "host-2", "host-1"]),
        (["vcpus"], ["host-1", "host-10", "host-2"]),
        (["-VCPU"], ["host-10", "host-1", "host-2"]),
        (["last contact"], ["host-10", "host-1", "host-2"]),
    ],
)
def test_rows_are_sorted_by_a_column_and_empty_values_come_last(keys, order):
    assert names(HOSTS.sort(ROWS, keys)) == order


def test_later_sort_keys_order_equal_rows():
    rows = [{"name": name, "vcpus": vcpus} for name, vcpus in (("b", 1), ("a", 2), ("a", 1))]
    assert [(row["name"], row["vcpus"]) for row in HOSTS.sort(rows, ["name", "-vcpus"])] == [
        ("a", 2),
        ("a", 1),
        ("b", 1),
    ]


def test_csv_has_plain_values_and_iso_times():
    assert HOSTS.to_csv(ROWS).splitlines() == [
        "name,vcpus,heard,tags,uuid",
        "host-10,4000,1970-01-01T00:00:00Z,a=b,u1",
        "host-2,,,,u2",
        'host-1,8,1970-01-02T00:00:00Z,"a=x, y",u3',
    ]


def test_wide_table_has_all_columns_and_utc_times():
    lines = HOSTS.to_lines(ROWS, "wide")
    assert lines[0].split() == ["name", "VCPU", "last", "contact", "tags", "text", "uuid"]
    assert lines[1] == "host-10  4,000  1970-01-01 00:00:00Z  a=b     4000 of 9  u1"


def test_chosen_columns_appear_in_their_order_in_each_form():
    assert HOSTS.to_lines(ROWS[:1], "table", ["uuid", "name"]) == ["uuid  name", "u1    host-10"]
    assert HOSTS.to_csv(ROWS[:1], ["uuid", "vcpus"]) == "uuid,vcpus\nu1,4000"
    assert HOSTS.pick(ROWS[:1], ["heard", "vcpus"]) == [{"heard": "1970-01-01T00:00:00Z", "vcpus": 4000}]


def test_unknown_column_is_refused_with_a_suggestion():
    with pytest.raises(click.UsageError, match="no column is called 'vcpux', did you mean 'vcpus'"):
        HOSTS.find_columns(["vcpux"])
    with pytest.raises(click.UsageError, match="no column is called 'zone'; use name, vcpus, heard"):
        HOSTS.find_columns(["zone"])


def test_list_without_rows_says_so():
    assert HOSTS.to_lines([], "table") == ["no hosts"]
    assert HOSTS.to_csv([]) == "name,vcpus,heard,tags,uuid"


def test_parts_of_a_value_are_readable():
    assert value_text([["x86_64", "kvm"], {"a": 1}]) == "x86_64 kvm, (a=1)"
    assert value_text([]) == value_text({}) == value_text("") == "-"
