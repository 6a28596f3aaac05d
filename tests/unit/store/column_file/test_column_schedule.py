"""A column file is written when enough has changed, and not too often."""

import pytest

from roost.store.column_file.column_schedule import FleetStatus, is_due
from roost.store.column_file.file_layout import ColumnBase, Header
from roost.store.column_file.file_place import FoundFile

NOW_S = 1_000_000.0
LARGE = FleetStatus(position=5000, rows=100_000, change_bytes=300.0)


def found(*, position=4000, age_s=3600.0, size=1_000_000, took_s=1.0, **header):
    base = ColumnBase(position=position, schema="0012")
    fields = {"program_schema": Header(program="", token="", base=base, made_at_s=0.0).program_schema}
    made = Header(**({"program": _program(), "token": "0", "base": base, "made_at_s": NOW_S - age_s} | fields | header))
    return FoundFile(made, size, took_s)


def _program():
    from roost import __version__

    return __version__


@pytest.mark.parametrize(
    ("status", "file", "is_expected"),
    [
        (LARGE, None, True),
        (LARGE._replace(rows=19_999), None, False),
        (LARGE, found(), True),  # 300,000 bytes of changes, of a file of a million
        (LARGE, found(size=10_000_000), False),
        (LARGE, found(size=10_000_000, age_s=90_000.0), True),
        (LARGE, found(position=5000, age_s=90_000.0), False),
        (LARGE, found(age_s=300.0), False),
        (LARGE, found(took_s=100.0), False),  # Writing it again now would take more than a fiftieth of the time.
        (LARGE, found(took_s=60.0), True),
        (LARGE, found(age_s=-300.0), True),  # The clock was set back.
        (LARGE, found(position=9000, age_s=300.0), True),
        (LARGE, found(program="0.0.1", age_s=300.0), True),
        (LARGE._replace(change_bytes=1.0), found(size=1000), False),
    ],
)
def test_file_is_due(status, file, is_expected):
    assert is_due(status, file, now_s=NOW_S) is is_expected
