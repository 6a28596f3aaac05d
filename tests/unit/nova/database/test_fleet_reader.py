"""What the reader returns for each change in Nova's databases."""

import socket
import threading
import time
from datetime import timedelta

import msgspec
import pytest
from sqlalchemy import insert, text, update

from roost.errors import Unavailable
from roost.model.host import HostFacts
from roost.nova.database import fleet_reader
from roost.nova.database.cell_reader import CellReader
from roost.nova.database.database_options import DatabaseOptions
from roost.nova.database.fleet_reader import FleetReader
from roost.nova.database.nova_fleet import Cell, FleetChanges
from roost.observe import log
from tests.differential.scheduler.nova import HOW_TO_INSTALL
from tests.support.databases import mariadb
from tests.support.missing_programs import require_module, skip_test
from tests.support.servers import nova_database as tables
from tests.support.servers.nova_database import NODE, missing_columns

only_sqlite = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


def is_empty(changes):
    """Return whether nothing changed."""
    return msgspec.structs.replace(changes, cells=(), unchanged=(), service_version_min=0) == FleetChanges()


def one(changes):
    """Return the only compute node of changes that have nothing else."""
    (compute,) = changes.computes
    assert is_empty(msgspec.structs.replace(changes, computes=()))
    return compute


def test_tables_of_the_tests_are_those_of_nova(schema):
    if schema is None:
        skip_test(HOW_TO_INSTALL)
    assert missing_columns(schema) == []


def test_first_read_has_everything_and_the_second_nothing(nova, cell, reader):
    uuid = nova.add_host(cell, "a")
    instance = nova.add_instance(cell, "a", project_id="p1", user_id="u1")
    aggregate = nova.add_aggregate("fast", hosts=["b", "a"], metadata={"ssd": "true", "availability_zone": "z"})
    changes = reader.read()
    (compute,) = changes.computes
    assert (compute.uuid, compute.host, compute.node, compute.cell) == (uuid, "a", "a", cell)
    assert compute.is_mapped
    assert compute.is_ready
    assert compute.facts == HostFacts(
        cpu_allocation_ratio=4.0,
        hypervisor_type="QEMU",
        hypervisor_version=8002002,
        host_ip="192.0.2.10",
        cpu_info={"arch": "x86_64", "model": "EPYC", "features": ["avx2"]},
        supported_instances=(("x86_64", "qemu", "hvm"), ("x86_64", "kvm", "hvm")),
        stats={"num_instances": "3", "io_workload": "2", "failed_builds": "1"},
        num_io_ops=2,
        failed_builds=1,
        cell=cell,
    )
    (read_aggregate,) = changes.aggregates
    assert (read_aggregate.uuid, read_aggregate.name, read_aggregate.hosts) == (aggregate, "fast", ("a", "b"))
    assert read_aggregate.metadata == {"ssd": "true", "availability_zone": "z"}
    (read_instance,) = changes.instances
    assert msgspec.structs.astuple(read_instance) == (instance, "a", "a", cell, "p1", "u1")
    assert changes.cells == (Cell(uuid=cell, name="cell1"),)
    assert changes.service_version_min == 74
    assert is_empty(reader.read())
    reader.forget()
    assert reader.read() == changes


def test_reports_of_living_services_change_nothing(nova, cell, reader):
    nova.add_host(cell, "a")
    reader.read()
    for _ in range(20):
        nova.clock.seconds += 10
        nova.report(cell)
        assert is_empty(reader.read())


def test_dead_service_changes_its_host_once_and_a_revived_one_again(nova, cell, reader):
    nova.add_host(cell, "a")
    nova.add_host(cell, "b")
    reader.read()
    last_s = nova.clock.seconds
    for _ in range(6):
        nova.clock.seconds += 10
        nova.report(cell, "b")
        assert is_empty(reader.read())
    nova.clock.seconds += 1
    dead = one(reader.read())
    assert (dead.host, dead.facts.reported_at_s, dead.is_ready) == ("a", last_s, True)
    nova.clock.seconds += 10
    nova.report(cell, "b")
    assert is_empty(reader.read())
    nova.report(cell, "a")
    revived = one(reader.read())
    assert (revived.host, revived.facts.reported_at_s) == ("a", None)


def test_service_without_a_report_counts_from_its_creation(nova, cell, reader):
    nova.add_host(cell, "a")
    nova.set_service(cell, "a", last_seen_up=None)
    assert reader.read().computes[0].facts.reported_at_s is None
    created_s = nova.clock.seconds
    nova.clock.seconds += 61
    assert one(reader.read()).facts.reported_at_s == created_s


def test_service_with_a_clock_far_ahead_is_dead_and_stays_dead(nova, cell, reader):
    nova.add_host(cell, "a")
    nova.set_service(cell, "a", last_seen_up=nova.now() + timedelta(seconds=100))
    assert reader.read().computes[0].facts.reported_at_s == nova.clock.seconds - 100
    for _ in range(3):
        nova.clock.seconds += 10
        nova.set_service(cell, "a", last_seen_up=nova.now() + timedelta(seconds=100))
        assert is_empty(reader.read())


def test_disabled_and_forced_down_services(nova, cell, reader):
    nova.add_host(cell, "a")
    reader.read()
    nova.set_service(cell, "a", disabled=True, disabled_reason="repair")
    facts = one(reader.read()).facts
    assert (facts.is_disabled, facts.disabled_reason, facts.is_forced_down) == (True, "repair", False)
    nova.set_service(cell, "a", disabled=False, disabled_reason=None, forced_down=True)
    facts = one(reader.read()).facts
    assert (facts.is_disabled, facts.disabled_reason, facts.is_forced_down) == (False, "", True)


def test_host_is_ready_once_it_is_mapped_sized_and_has_a_service(nova, cell, reader):
    uuid = nova.add_host(cell, "a", mapped=False, service=False, free_disk_gb=None)
    compute = reader.read().computes[0]
    assert (compute.is_mapped, compute.is_ready) == (False, False)
    nova.map_host(cell, "a")
    compute = one(reader.read())
    assert (compute.is_mapped, compute.is_ready) == (True, False)
    nova.set_node(cell, uuid, free_disk_gb=5)
    assert is_empty(reader.read())
    nova.add_service(cell, "a")
    assert one(reader.read()).is_ready
    nova.unmap_host("a")
    compute = one(reader.read())
    assert (compute.is_mapped, compute.is_ready) == (False, False)


def test_host_that_is_mapped_to_another_cell_is_not_ready(nova, cell, reader, new_url, kind):
    other = nova.add_cell(new_url(kind), name="cell2")
    nova.add_host(cell, "a", mapped=False)
    nova.map_host(other, "a")
    assert not reader.read().computes[0].is_mapped


def test_host_of_an_old_row_is_that_of_its_service(nova, cell, reader):
    nova.add_host(cell, "a")
    number = nova.cell(cell, tables.SERVICES.select())[0].id
    nova.cell(cell, update(tables.COMPUTE_NODES).values(host=None, service_id=number))
    compute = reader.read().computes[0]
    assert (compute.host, compute.is_ready) == ("a", True)


@pytest.mark.parametrize("hard", [False, True])
def test_deleted_hosts_are_gone(nova, cell, reader, hard):
    uuid = nova.add_host(cell, "a")
    kept = nova.add_host(cell, "b")
    assert {each.uuid for each in reader.read().computes} == {uuid, kept}
    nova.delete_host(cell, "a", hard=hard)
    if hard:
        # Only a comparison of all ids finds it.
        nova.report(cell)
        assert is_empty(reader.read())
        nova.clock.seconds += 60
        nova.report(cell)
    assert reader.read().gone == (uuid,)
    assert is_empty(reader.read())


def test_deleted_host_that_returns_with_its_uuid_is_changed_and_not_gone(nova, cell, reader):
    uuid = nova.add_host(cell, "a")
    reader.read()
    nova.delete_host(cell, "a", hard=True)
    nova.add_host(cell, "a", uuid=uuid, host_ip="192.0.2.99")
    nova.clock.seconds += 61
    nova.report(cell)
    compute = one(reader.read())
    assert (compute.uuid, compute.facts.host_ip) == (uuid, "192.0.2.99")


def test_second_read_has_only_changed_facts(nova, cell, reader):
    uuids = [nova.add_host(cell, f"h{number}") for number in range(5)]
    reader.read()
    nova.set_node(cell, uuids[2], host_ip="192.0.2.33")
    nova.set_node(cell, uuids[3])  # touched, but equal
    assert one(reader.read()).uuid == uuids[2]
    # A second change within the same second.
    nova.set_node(cell, uuids[2], host_ip="192.0.2.34")
    assert one(reader.read()).facts.host_ip == "192.0.2.34"


def test_late_commit_of_an_old_time_is_found_by_the_next_comparison(nova, cell, reader):
    uuid = nova.add_host(cell, "a")
    reader.read()
    nova.clock.seconds += 20
    reader.read()
    old = nova.now() - timedelta(seconds=10)
    nova.set_node(cell, uuid, host_ip="192.0.2.33", updated_at=old)
    assert is_empty(reader.read())
    nova.clock.seconds += 61
    nova.report(cell)
    assert one(reader.read()).facts.host_ip == "192.0.2.33"


def test_instances_that_are_new_moved_or_gone(nova, cell, reader):
    nova.add_host(cell, "a")
    first, second = nova.add_instance(cell, "a"), nova.add_instance(cell, "a")
    nova.add_instance(cell, None)
    assert {each.uuid for each in reader.read().instances} == {first, second}
    third = nova.add_instance(cell, "b")
    nova.set_instance(cell, first, host="b", node="b")
    nova.set_instance(cell, second, host=None, node=None)  # shelved
    changes = reader.read()
    assert {(each.uuid, each.host) for each in changes.instances} == {(first, "b"), (third, "b")}
    assert changes.gone_instances == (second,)
    assert is_empty(reader.read())


def test_unchanged_instances_are_read_again_within_a_minute(nova, cell, reader):
    instances = {nova.add_instance(cell, "a") for _ in range(30)}
    reader.read()
    nova.clock.seconds += 10  # New rows are read twice.
    reader.read()
    found = []
    for _ in range(6):
        nova.clock.seconds += 10
        found += reader.read().unchanged
    assert {(each.uuid, each.host) for each in found} == {(each, "a") for each in instances}
    assert len(found) <= 2 * len(instances)


@pytest.mark.parametrize("hard", [False, True])
def test_deleted_instances_are_gone_within_a_minute(nova, cell, reader, hard):
    instances = [nova.add_instance(cell, "a") for _ in range(30)]
    reader.read()
    nova.clock.seconds += 10
    reader.read()
    for instance in instances[:20]:
        nova.delete_instance(cell, instance, hard=hard)
    gone = []
    for _ in range(60):
        nova.clock.seconds += 1
        changes = reader.read()
        assert changes.instances == ()
        gone += changes.gone_instances
    assert sorted(gone) == sorted(instances[:20])


def test_old_instance_row_that_appears_late_is_found_within_a_minute(nova, cell, reader):
    reader.read()
    old = nova.now() - timedelta(days=1)
    instance = nova.add_instance(cell, "a", created_at=old, updated_at=old)
    found = []
    for _ in range(61):
        nova.clock.seconds += 1
        found += reader.read().instances
    assert [each.uuid for each in found] == [instance]


def test_instance_that_moves_to_another_cell_is_not_gone(nova, cell, reader, new_url, kind):
    other = nova.add_cell(new_url(kind), name="cell2")
    instance = nova.add_instance(cell, "a")
    nova.add_instance(other, "b", uuid=instance, hidden=True)
    assert [each.host for each in reader.read().instances] == ["a"]
    nova.set_instance(other, instance, hidden=False)
    nova.set_instance(cell, instance, hidden=True)
    changes = reader.read()
    assert [(each.host, each.cell) for each in changes.instances] == [("b", other)]
    assert changes.gone_instances == ()


def test_aggregates_are_returned_when_they_change(nova, reader):
    first = nova.add_aggregate("first", hosts=["a"])
    reader.read()
    assert reader.read().aggregates is None
    second = nova.add_aggregate("second", metadata={"x": "y"})
    assert [each.uuid for each in reader.read().aggregates] == [first, second]
    nova.delete_aggregate(first)
    assert [each.uuid for each in reader.read().aggregates] == [second]
    # A change within the second of the last read has no new time. A message of Nova causes a complete read.
    nova.api(update(tables.AGGREGATE_METADATA).values(value="z"))
    assert reader.read().aggregates is None
    reader.refresh_aggregates()
    assert reader.read().aggregates[0].metadata == {"x": "z"}
    assert reader.read().aggregates is None


def test_silent_cell_keeps_its_picture_and_does_not_affect_others(nova, cell, reader, new_url, kind):
    url = new_url(kind)
    other = nova.add_cell(url, name="cell2")
    first, second = nova.add_host(cell, "a"), nova.add_host(other, "b")
    lines = []
    with log.redirect_events(lines.append):
        assert len(reader.read().computes) == 2
        nova.set_cell(other, database_connection="mysql://nova:secret@127.0.0.1:1/nova")
        nova.set_node(cell, first, host_ip="192.0.2.33")
        for _ in range(2):
            changes = reader.read()
            assert [*changes.silent_cells] == [other]
            assert changes.gone == ()
        assert "the database of cell cell2 cannot be read: " in changes.silent_cells[other]
        assert "secret" not in changes.silent_cells[other]
        nova.set_cell(other, database_connection=url)
        nova.set_node(other, second, host_ip="192.0.2.44")
        changes = reader.read()
        assert changes.silent_cells == {}
        assert [each.facts.host_ip for each in changes.computes] == ["192.0.2.44"]
    assert [line["event"] for line in lines] == ["cell_silent", "cell_answers"]


@only_sqlite
def test_cell_that_accepts_connections_but_does_not_answer_is_silent(nova, cell):
    require_module("pymysql", extra="mysql")
    nova.add_host(cell, "a")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        other = nova.add_cell(nova.api_url + "2", mapping_url=f"mysql://nova:secret@127.0.0.1:{port}/nova")
        reader = FleetReader(DatabaseOptions(api_connection=nova.api_url, timeout_s=0.2), nova.clock)
        changes = reader.read()
        assert [*changes.silent_cells] == [other]
        assert [each.host for each in changes.computes] == ["a"]
    reader.close()


@only_sqlite
def test_many_silent_cells_delay_a_reading_as_one_does(nova, monkeypatch):
    stop = threading.Event()
    for number in range(7):
        nova.add_cell(nova.api_url + str(number))
    reader = FleetReader(DatabaseOptions(api_connection=nova.api_url, timeout_s=3.0), nova.clock)
    monkeypatch.setattr(CellReader, "read", lambda _self, **_: stop.wait(60.0))
    with monkeypatch.context() as patch:
        patch.setattr(fleet_reader, "_GRACE_S", -2.9)
        assert len(reader.read().silent_cells) == 7
    began_s = time.monotonic()
    assert len(reader.read().silent_cells) == 7
    assert time.monotonic() - began_s < 2.0
    stop.set()
    reader.close()


@only_sqlite
def test_templates_are_filled_and_cell0_and_disabled_cells_are_skipped(nova, new_url):
    url = new_url("sqlite")
    cell = nova.add_cell(url, mapping_url="{scheme}:///" + url.removeprefix("sqlite:///"))
    off = nova.add_cell(new_url("sqlite"), name="off", disabled=True)
    for each in (cell, off):
        nova.add_host(each, f"host-{each}")
    options = DatabaseOptions(api_connection=nova.api_url)
    reader = FleetReader(options, nova.clock)
    assert "template" in reader.read().silent_cells[cell]
    reader.close()
    reader = FleetReader(msgspec.structs.replace(options, connection="sqlite:////cell0"), nova.clock)
    changes = reader.read()
    assert [each.cell for each in changes.computes] == [cell]
    assert {each.uuid: each.is_disabled for each in changes.cells} == {cell: False, off: True}
    # A cell that is enabled joins, and a disabled one leaves.
    nova.set_cell(off, disabled=False)
    assert one(reader.read()).cell == off
    nova.set_cell(off, disabled=True)
    assert len(reader.read().gone) == 1
    reader.close()


@pytest.mark.parametrize(
    "column", ["stats", "metrics", "cpu_info", "supported_instances", "numa_topology", "pci_stats"]
)
@only_sqlite
def test_host_with_an_invalid_column_is_not_ready_and_is_logged_once(nova, cell, reader, column):
    uuid = nova.add_host(cell, "a")
    nova.add_host(cell, "b")
    lines = []
    with log.redirect_events(lines.append):
        reader.read()
        for _ in range(3):
            nova.set_node(cell, uuid, **{column: '{"broken": '})
            nova.clock.seconds += 1
            reader.read()
    assert [(line["event"], line["host"], line["provider"]) for line in lines] == [("compute_node_invalid", "a", uuid)]
    reader.forget()
    computes = {each.host: each for each in reader.read().computes}
    assert (computes["a"].is_ready, computes["b"].is_ready) == (False, True)
    assert computes["a"].facts.hypervisor_type == ""
    nova.set_node(cell, uuid, **{column: NODE.get(column)})
    assert one(reader.read()).is_ready


@only_sqlite
def test_failure_of_the_api_database_loses_nothing(nova, cell, reader):
    nova.add_host(cell, "a")
    nova.add_aggregate("x")
    nova.api(text("ALTER TABLE cell_mappings RENAME TO elsewhere"))
    for _ in range(2):
        with pytest.raises(Unavailable, match="the API database cannot be read: no such table"):
            reader.read()
    nova.api(text("ALTER TABLE elsewhere RENAME TO cell_mappings"))
    changes = reader.read()
    assert len(changes.computes) == len(changes.aggregates) == 1


@only_sqlite
def test_read_that_fails_in_the_middle_loses_nothing(nova, cell, reader):
    uuid = nova.add_host(cell, "a")
    instance = nova.add_instance(cell, "a")
    reader.read()
    nova.set_service(cell, "a", disabled=True)
    nova.set_node(cell, uuid, host_ip="192.0.2.33")
    nova.set_instance(cell, instance, host="b")
    nova.cell(cell, text("ALTER TABLE instances RENAME TO elsewhere"))
    assert [*reader.read().silent_cells] == [cell]
    nova.cell(cell, text("ALTER TABLE elsewhere RENAME TO instances"))
    changes = reader.read()
    assert (changes.computes[0].facts.is_disabled, changes.computes[0].facts.host_ip) == (True, "192.0.2.33")
    assert changes.instances[0].host == "b"


@pytest.mark.parametrize("kind", ["mariadb"], indirect=True)
def test_select_is_the_only_privilege_that_reading_needs(nova, cell):
    nova.add_host(cell, "a")
    databases = [mariadb.name_of(url) for url in (nova.api_url, nova.cells[cell])]
    nova.api(text("CREATE OR REPLACE USER 'reader'@'localhost' IDENTIFIED BY 'r:d@r'"))
    for name in databases:
        nova.api(text(f"GRANT SELECT ON {name}.* TO 'reader'@'localhost'".replace(":", r"\:")))
    api_url = nova.api_url.replace("root@", "reader:r%3Ad%40r@")
    nova.set_cell(cell, database_connection=nova.cells[cell].replace("root@", "{username}:r%3Ad%40r@"))
    reader = FleetReader(DatabaseOptions(api_connection=api_url, connection=api_url), nova.clock)
    assert reader.read().computes[0].is_ready
    reader.close()


@only_sqlite
def test_many_rows_are_read_in_parts(nova, cell, reader):
    nova.add_host(cell, "first")
    node = dict(nova.cell(cell, tables.COMPUTE_NODES.select())[0]._mapping)
    rows = [
        {**node, "id": number, "host": f"h{number}", "hypervisor_hostname": f"h{number}", "uuid": f"u{number}"}
        for number in range(10, 1300)
    ]
    nova.cell(cell, insert(tables.COMPUTE_NODES), rows)
    assert len(reader.read().computes) == 1291
