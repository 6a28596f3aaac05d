"""The row of the scheduler in Nova's list of services."""

from contextlib import closing

import msgspec
import pytest
from sqlalchemy import select, text, update

from roost.errors import BadSettings, Unavailable
from roost.nova.database.database_link import DatabaseLink
from roost.nova.database.service_record import ServiceRecord
from tests.support.servers.nova_database import SERVICES


@pytest.fixture
def record(nova, cell, options):
    """Yield the record of a scheduler."""
    options = msgspec.structs.replace(options, connection=nova.cells[cell])
    record = ServiceRecord(options, host="roost1", clock=nova.clock)
    yield record
    record.close()


def rows(nova, cell):
    columns = SERVICES.c
    return nova.cell(cell, select(columns.host, columns.binary, columns.topic, columns.report_count, columns.version))


def test_row_is_created_and_reports(nova, cell, record):
    assert record.report_if_due()
    assert rows(nova, cell) == [("roost1", "nova-scheduler", "scheduler", 1, 74)]
    assert not record.report_if_due()
    nova.clock.seconds += 10
    assert record.report_if_due()
    assert rows(nova, cell) == [("roost1", "nova-scheduler", "scheduler", 2, 74)]
    assert nova.cell(cell, select(SERVICES.c.last_seen_up))[0][0] == nova.now()


def test_row_of_nova_scheduler_is_taken_over(nova, cell, record):
    nova.add_service(cell, "roost1", binary="nova-scheduler", topic="scheduler", report_count=8, version=70)
    record.report()
    assert rows(nova, cell) == [("roost1", "nova-scheduler", "scheduler", 9, 74)]


def test_row_changes_nothing_for_the_reader(nova, cell, record, reader):
    nova.add_host(cell, "a")
    reader.read()
    record.report()
    assert reader.read().computes == ()


def test_row_is_reported_again_an_interval_after_a_failure(nova, cell, record):
    nova.cell(cell, _rename("services", "elsewhere"))
    with pytest.raises(Unavailable, match="cannot be written"):
        record.report_if_due()
    assert not record.report_if_due()
    nova.cell(cell, _rename("elsewhere", "services"))
    nova.clock.seconds += 10
    assert record.report_if_due()


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_database_must_be_set(nova, options):
    with pytest.raises(BadSettings, match="is not set: the row"):
        ServiceRecord(options, host="roost1", clock=nova.clock)


def _rename(old, new):
    return text(f"ALTER TABLE {old} RENAME TO {new}")


def test_row_locked_by_another_process_delays_a_report_only_for_a_time(nova, cell, options):
    nova.add_service(cell, "roost1", binary="nova-scheduler", topic="scheduler")
    other = DatabaseLink(nova.cells[cell], subject="it", timeout_s=5.0)
    options = msgspec.structs.replace(options, connection=nova.cells[cell], timeout_s=1.0)
    with closing(other), closing(ServiceRecord(options, host="roost1", clock=nova.clock)) as record:
        with other.write() as connection:
            connection.execute(update(SERVICES).values(version=1))
            with pytest.raises(Unavailable, match="cannot be written"):
                record.report()
        record.report()
