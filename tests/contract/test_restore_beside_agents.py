"""A backup is restored while agents keep their guests: missing and moved guests are found. Real processes."""

import json
import sqlite3
from contextlib import closing, contextmanager

import pytest

from roost.compute.drivers.fake.guests import FolderShelf, read_record
from roost.model.work.guest import fault_of_holder
from tests.support.fleets.products import roost
from tests.support.servers.clusters import running_agents
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

HOST = "host-a"
OTHER = "host-b"
FAULT = f"its guest is missing on {HOST}: rebuild or delete the instance"


@contextmanager
def running_agent(folder, server, *, host=HOST):
    """Run the agent of a host; its guests and its journal survive the process."""
    own = folder / host
    own.mkdir(exist_ok=True)
    words = ["--host", host, "--state-dir", own / "journals", "--option", f"state={folder / 'guests'}"]
    with running_agents(server, own, *words):
        wait_until(lambda: host in [each["host"] for each in run(server, folder, "host", "list")[1]])
        yield


def run(server, folder, *words):
    """Run a command; return its exit code and its JSON output."""
    result = roost(*words, "--json", "--url", server.address, cwd=folder)
    return result.returncode, json.loads(result.stdout or "null")


def shown(server, folder, name):
    """Return status and fault of an instance."""
    instance = run(server, folder, "instance", "show", name)[1]
    return instance["status"], instance["fault"]


def guests(folder, host=HOST):
    return sorted(
        each.spec.name for each in read_record(FolderShelf(folder / "guests").load(host), host).guests.values()
    )


def restore(folder):
    """Restore the backup of an hour ago."""
    assert roost("db", "restore", "night", "--replace", "--data", folder, cwd=folder).returncode == 0
    with closing(sqlite3.connect(folder / "roost.db", isolation_level=None)) as database:
        database.execute("UPDATE instance_status SET changed_at_s = changed_at_s - 3600")


def test_deleted_instances_of_a_restored_database_are_found_rebuilt_and_deleted(tmp_path):
    names = ["kept", "rebuilt", "deleted"]
    with serve(noun="up", folder=tmp_path) as server, running_agent(tmp_path, server):
        for name in names:
            flavor = ("--flavor", "vcpus=1,memory_mb=64")
            assert run(server, tmp_path, "instance", "create", name, *flavor, "--wait")[0] == 0
        assert roost("db", "backup", "night", "--data", tmp_path, cwd=tmp_path).returncode == 0
        for name in names[1:]:
            assert run(server, tmp_path, "instance", "stop", name, "--wait")[0] == 0
            assert run(server, tmp_path, "instance", "start", name, "--wait")[0] == 0
            assert run(server, tmp_path, "instance", "delete", name, "--wait")[0] == 0
    assert guests(tmp_path) == ["kept"]
    restore(tmp_path)
    with serve(noun="up", folder=tmp_path) as server, running_agent(tmp_path, server):
        wait_until(
            lambda: shown(server, tmp_path, "rebuilt") == shown(server, tmp_path, "deleted") == ("ACTIVE", FAULT)
        )
        assert shown(server, tmp_path, "kept") == ("ACTIVE", "")
        code, findings = run(server, tmp_path, "audit")
        assert (code, [each["problem"] for each in findings]) == (8, [f"is ACTIVE, but {FAULT}"] * 2)
        assert run(server, tmp_path, "instance", "rebuild", "rebuilt", "--wait")[0] == 0
        assert run(server, tmp_path, "instance", "delete", "deleted", "--wait")[0] == 0
        assert shown(server, tmp_path, "rebuilt") == ("ACTIVE", "")
        assert run(server, tmp_path, "audit") == (0, [])
    assert guests(tmp_path) == ["kept", "rebuilt"]


@contextmanager
def running_cluster(folder):
    """Run a server with the agents of both hosts."""
    with (
        serve(noun="up", folder=folder) as server,
        running_agent(folder, server),
        running_agent(folder, server, host=OTHER),
    ):
        yield server


def test_instance_that_moved_after_the_backup_keeps_its_only_guest(tmp_path):
    flavor = ("--flavor", "vcpus=1,memory_mb=64")
    with serve(noun="up", folder=tmp_path) as server, running_agent(tmp_path, server):
        for name in ["adopted", "deleted"]:
            assert run(server, tmp_path, "instance", "create", name, *flavor, "--wait")[0] == 0
        with running_agent(tmp_path, server, host=OTHER):
            assert roost("db", "backup", "night", "--data", tmp_path, cwd=tmp_path).returncode == 0
            for name in ["adopted", "deleted"]:
                assert run(server, tmp_path, "instance", "migrate", name, "--host", OTHER, "--wait")[0] == 0
            wait_until(lambda: guests(tmp_path, OTHER) == ["adopted", "deleted"])
    assert guests(tmp_path) == []
    restore(tmp_path)
    with running_cluster(tmp_path) as server:
        held = ("ACTIVE", fault_of_holder(OTHER))
        wait_until(lambda: [shown(server, tmp_path, name) for name in ["adopted", "deleted"]] == [held, held])
        wait_until(lambda: {each["state"] for each in run(server, tmp_path, "agent", "list")[1]} == {"ready"})
        code, findings = run(server, tmp_path, "audit")
        assert (code, [each["problem"] for each in findings]) == (8, [f"is ACTIVE, but {fault_of_holder(OTHER)}"] * 2)
        refused = roost("instance", "evacuate", "adopted", "--url", server.address, cwd=tmp_path)
        assert "cannot evacuate: its only guest is on host-b, which is not its host" in refused.stderr
        assert guests(tmp_path, OTHER) == ["adopted", "deleted"]
        assert run(server, tmp_path, "instance", "reset", "adopted", "--wait")[0] == 0
        assert run(server, tmp_path, "instance", "delete", "deleted", "--wait")[0] == 0
        assert shown(server, tmp_path, "adopted") == ("ACTIVE", "")
        assert run(server, tmp_path, "audit") == (0, [])
    assert (guests(tmp_path), guests(tmp_path, OTHER)) == ([], ["adopted"])
