"""``roost capacity``, ``roost audit`` and ``roost fleet export`` on a server, compared with its database."""

import json
import re
import sqlite3
from contextlib import closing

import msgspec
import pytest

from roost.app import open_roost
from roost.model.flavor import Flavor
from roost.model.image import Image
from roost.model.request import Network, Request, ResourceGroup, Retry
from tests.support.fleets.products import fleet, request
from tests.support.servers.servers import serve


@pytest.fixture
def folder(tmp_path):
    """Return the folder of a database with three hosts of 8 VCPU, 2 VCPU allocated."""
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        roost.decide(request(2))
    return tmp_path


@pytest.fixture
def both(folder, run):
    """Return a function that runs a command on the database and on a server; it returns the common result."""
    with serve(noun="up", folder=folder) as server:

        def both(*words):
            on_database, on_server = run(*words, "--data", folder), run(*words, "--url", server.address)
            assert on_database[:2] == on_server[:2]  # Progress goes to standard error.
            return on_server

        yield both


def test_capacity_is_the_same_on_a_server(both, tmp_path):
    assert both("capacity", "--flavor", "2 cores")[1].startswith("2 cores: 11 more fit")
    code, output, _ = both("capacity", "--known-flavors", "--by", "host", "--format", "json")
    assert (code, [each["count"] for each in json.loads(output)]) == (0, [11])
    assert both("capacity", "--flavor", "none")[::2] == (
        4,
        "roost: no such stored or previously requested flavor: none\n",
    )
    assert both("capacity", "--flavor", "vcpus=1", "--limit", "0")[0] == 2
    wanted = Request(
        flavor=Flavor(name="f", vcpus=8),
        ignore_hosts=("host-1",),
        groups=(ResourceGroup(suffix="_A", resources={"VCPU": 1}),),
        networks=(Network(name="net"),),
        retry=Retry(attempts=1, hosts=(("host-2", "host-2"),)),
    )
    (tmp_path / "request.json").write_bytes(msgspec.json.encode(wanted))
    assert "; 2 of 3 hosts take one now" in both("capacity", "--request", tmp_path / "request.json")[1]


def test_shapes_are_counted_on_a_server_as_in_its_database(tmp_path, run):
    wanted = Request(
        flavor=Flavor(name="gpu", vcpus=1),
        image=Image(id="i", properties={"hw_cpu_sockets": "1"}),
        groups=(ResourceGroup(suffix="_A", resources={"VCPU": 4}),),
        project_id="p",
    )
    with open_roost(data=tmp_path) as roost:
        roost.install(fleet(3, vcpus=8))
        roost.decide(wanted)
    with serve(noun="up", folder=tmp_path) as server:
        on_server = run("capacity", "--known-flavors", "--url", server.address)
        assert on_server[:2] == run("capacity", "--known-flavors", "--data", tmp_path)[:2]
    assert on_server[1].startswith("gpu + 4 VCPU: ")


def test_fleet_is_exported_from_a_server(both, folder):
    code, output, error = both("fleet", "export", "--output", folder / "fleet.json")
    assert (code, output, error) == (0, "", "")
    document = json.loads((folder / "fleet.json").read_text())
    assert [each["host"] for each in document["hosts"]] == ["host-0", "host-1", "host-2"]


def test_audit_of_a_server_reports_its_findings(both, folder):
    assert both("audit") == (0, "no findings: all rules hold\n", "")
    with closing(sqlite3.connect(folder / "roost.db")) as database:
        database.execute("UPDATE inventory SET used = used + 1 WHERE used > 0")
        database.commit()
    code, output, error = both("audit")
    assert (code, error) == (8, "roost: the audit found 2 broken rules\n")
    assert all(re.match("used +inventory of class", line) for line in output.splitlines()[1:3]), output


def test_server_without_a_reader_process_refuses_an_audit(folder, run):
    with serve(noun="up", folder=folder, settings="has_reader = false") as server:
        code, output, error = run("audit", "--url", server.address)
    assert (code, output, "reader process" in error) == (7, "", True)


def test_absent_server_is_an_error_with_advice(run, monkeypatch):
    monkeypatch.setattr("roost.cli.backend.DEFAULT_URL", "http://127.0.0.1:1")
    monkeypatch.delenv("ROOST_URL", raising=False)
    for words in (("audit",), ("capacity", "--flavor", "vcpus=1"), ("fleet", "export"), ("why", "last")):
        code, _, error = run(*words)
        assert (code, error.count("\n")) == (7, 1)
        assert error.endswith("; name a server with --url, or a database with --data or --database\n")
