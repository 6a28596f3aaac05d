"""Nova's databases, on every kind of server: tables, clocks, cells, and hosts."""

import pytest
import sqlalchemy
from msgspec.structs import replace

from roost.machine import SystemClock
from roost.model.settings.nova_settings import Nova
from roost.nova.check.check_databases import check_databases
from roost.nova.check.check_fleet import check_fleet, read_fleet
from tests.support.servers.nova_database import NovaDatabase, SkewedClock

CLOCKS = ("ok", "2 clocks of databases agree with this machine")
READABLE = [
    ("ok", "the API database is readable: 5 tables"),
    ("ok", "the database of cell cell1 is readable: 3 tables"),
    CLOCKS,
]


@pytest.fixture
def nova(kind, new_url, schema):
    """Yield a Nova on the present time: the clocks of servers cannot be moved."""
    database = NovaDatabase(new_url(kind), schema=schema, clock=SystemClock())
    yield database
    database.close()


def lines(findings):
    return [(each.level, each.found) for each in findings]


def database_lines(options, clock=None):
    return lines(check_databases(options, clock or SystemClock())[0])


def fleet_lines(options, settings=None):
    clock = SystemClock()
    return lines(check_fleet(read_fleet(options, clock), options, settings or Nova(), clock=clock))


def test_good_databases_are_ok(nova, cell, options):
    nova.add_host(cell, "cmp1")
    findings, cells = check_databases(options, SystemClock())
    assert lines(findings) == READABLE
    assert [each.uuid for each in cells] == [cell]
    assert fleet_lines(options) == [("ok", "cell cell1: 1 compute node: 1 up, 0 down, 0 disabled")]


def test_missing_table_and_column_are_errors_of_their_own(nova, cell, options):
    for statement in ("DROP TABLE instances", "ALTER TABLE services DROP COLUMN forced_down"):
        nova.cell(cell, sqlalchemy.text(statement))
    found = database_lines(options)
    assert [level for level, _ in found] == ["ok", "error", "error", "ok"]
    assert "table services: the database of cell cell1 cannot be read: " in found[1][1]
    assert "forced_down" in found[1][1]
    assert found[2][1].startswith("table instances: the database of cell cell1 cannot be read: ")


def test_missing_table_of_the_api_database_ends_the_part(nova, options):
    nova.api(sqlalchemy.text("DROP TABLE aggregate_metadata"))
    findings, cells = check_databases(options, SystemClock())
    assert cells is None
    assert [each.level for each in findings] == ["error"]
    assert findings[0].advice == "correct the URL, or update the schema: nova-manage api_db sync"


@pytest.mark.usefixtures("cell")
def test_clocks_that_differ(options):
    for skew_s, level in ((10.0, "warning"), (-10.0, "warning"), (120.0, "error")):
        found = database_lines(options, SkewedClock(skew_s))
        assert [each for each, _ in found] == ["ok", "ok", level, level]
        side = "behind" if skew_s > 0 else "ahead of"
        assert f"the clock of the API database is {abs(skew_s):.0f} s {side} the clock of this machine" in found[2][1]


def test_cell_that_cannot_be_read(nova, cell, options, new_url):
    nova.set_cell(cell, database_connection=new_url("sqlite"))
    (level, problem), *_ = database_lines(options)[1:]
    assert level == "error"
    assert "the database of cell cell1 cannot be read" in problem
    assert fleet_lines(options)[0][0] == "error"


def test_template_that_cannot_be_filled(nova, cell, options):
    nova.set_cell(cell, database_connection="{scheme}://{username}:{password}@{hostname}/cell")
    found = database_lines(options)
    assert (
        "error",
        "the database of cell cell1 has a template as its URL, which [database] connection cannot fill",
    ) in found


def test_deployment_without_cells(options):
    assert ("error", "no enabled cell is mapped: no host is known") in database_lines(options)


def test_hosts_down_disabled_unmapped_and_silent(nova, cell, options):
    for host in ("cmp1", "cmp2", "cmp3"):
        nova.add_host(cell, host)
    nova.add_host(cell, "cmp4", mapped=False)
    nova.add_host(cell, "cmp5", free_disk_gb=None)
    nova.kill_service(cell, "cmp1")
    nova.set_service(cell, "cmp2", disabled=True)
    unmapped = "1 compute node not mapped to a cell: cmp4"
    assert fleet_lines(options) == [
        ("ok", "cell cell1: 5 compute nodes: 4 up, 1 down, 1 disabled"),
        ("warning", "1 compute node down in cell cell1: cmp1"),
        ("warning", unmapped),
        ("warning", "1 compute node without a service or a report: cmp5"),
    ]
    discovery = fleet_lines(options, Nova(discovers_hosts=True))
    assert ("ok", f"{unmapped}; Roost maps them, as nova.discovers_hosts says") in discovery


def test_all_hosts_down_is_an_error(nova, cell, options):
    nova.add_host(cell, "cmp1")
    nova.kill_service(cell, "cmp1")
    assert ("error", "no compute service is up: no host can be chosen") in fleet_lines(options)


@pytest.mark.usefixtures("cell")
def test_empty_and_disabled_cells(nova, options, kind, new_url):
    nova.add_cell(new_url(kind), name="cell2", disabled=True)
    assert fleet_lines(options) == [
        ("warning", "cell cell1 has no compute node"),
        ("ok", "cell cell2 is disabled: its hosts are not chosen"),
    ]


def test_unreachable_api_database_shows_no_password(options):
    for url in ("mysql+pymysql://nova:s3cret@127.0.0.1:1/nova_api", "postgresql://nova:s3cret@127.0.0.1:1/nova_api"):
        findings, cells = check_databases(replace(options, api_connection=url, timeout_s=1.0), SystemClock())
        assert cells is None
        assert [each.level for each in findings] == ["error"]
        assert "the API database cannot be read" in findings[0].found
        assert "s3cret" not in str(findings)
