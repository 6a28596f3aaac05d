"""Instances that are in any status, without anybody who brought them there."""

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.model.names import uuid_bytes
from roost.model.writes import Item


def be(own, uuid, **changes):
    """Let an instance be something else from now on, as a conductor would commit it; nobody works on it by default.

    Args:
        own: the API of the server, as ``tests.support.servers.in_process_api`` gives it.
    """
    reader = own.agents.reader
    known = {"status": "ACTIVE", "task": "", "operation_id": 0, "host": "host-0", "node": "host-0"}

    def commit(current):
        row = next_version(reader(current).status(uuid_bytes(uuid)), **{**known, **changes})
        return current.commit([Item(writes=(), work=(replace_row(row),))])

    assert own.serving.run(commit) == [None]
