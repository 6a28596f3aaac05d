"""Mapping of new hosts, and its races."""

import threading

from sqlalchemy import select

from roost.nova.database.discover_hosts import discover_hosts
from roost.observe import log
from tests.support.missing_programs import require_module
from tests.support.servers.nova_database import COMPUTE_NODES, HOST_MAPPINGS


def mapped_hosts(nova):
    return sorted(row.host for row in nova.api(select(HOST_MAPPINGS.c.host)))


def unmapped_nodes(nova, cell):
    return [row.host for row in nova.cell(cell, select(COMPUTE_NODES.c.host).where(COMPUTE_NODES.c.mapped == 0))]


def test_new_hosts_are_mapped_and_chosen(nova, cell, options, reader):
    nova.add_host(cell, "old")
    nova.add_host(cell, "a", mapped=False)
    nova.add_host(cell, "b", node="b1", mapped=False)
    nova.add_host(cell, "b", node="b2", mapped=False)
    assert sum(each.is_ready for each in reader.read().computes) == 1
    assert discover_hosts(options, nova.clock) == ("a", "b")
    assert mapped_hosts(nova) == ["a", "b", "old"]
    assert unmapped_nodes(nova, cell) == []
    assert {each.node for each in reader.read().computes if each.is_ready} == {"a", "b1", "b2"}
    assert discover_hosts(options, nova.clock) == ()


def test_host_of_another_cell_stays_there(nova, cell, options, new_url, kind):
    other = nova.add_cell(new_url(kind), name="cell2")
    nova.add_host(cell, "a")
    nova.add_host(other, "a", mapped=False)
    assert discover_hosts(options, nova.clock) == ()
    assert mapped_hosts(nova) == ["a"]
    assert unmapped_nodes(nova, other) == ["a"]


def test_deleted_nodes_are_not_mapped(nova, cell, options):
    nova.add_host(cell, "a", mapped=False)
    nova.delete_host(cell, "a")
    assert discover_hosts(options, nova.clock) == ()


def test_two_processes_map_each_host_once(nova, cell, options):
    hosts = sorted(f"h{number:02}" for number in range(30))
    for host in hosts:
        nova.add_host(cell, host, mapped=False)
    start = threading.Barrier(2)
    results = []

    def discover():
        start.wait()
        results.append(discover_hosts(options, nova.clock))

    threads = [threading.Thread(target=discover) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results[0] + results[1]) == hosts
    assert mapped_hosts(nova) == hosts
    assert unmapped_nodes(nova, cell) == []


def test_silent_cell_does_not_affect_others(nova, cell, options):
    require_module("pymysql", extra="mysql")
    nova.set_cell(cell, database_connection="mysql://nova:secret@127.0.0.1:1/nova")
    other = nova.add_cell(nova.cells[cell], name="cell2")
    nova.add_host(other, "a", mapped=False)
    lines = []
    with log.redirect_events(lines.append):
        assert discover_hosts(options, nova.clock) == ("a",)
    assert [line["event"] for line in lines] == ["hosts_not_discovered", "host_mapped"]
