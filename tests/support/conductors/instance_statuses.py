"""Put instances into any status without an operation."""

from roost.conductor.operation.row_changes import next_version, replace_row
from roost.model.names import uuid_bytes
from roost.model.writes import Item


def set_status(own, uuid, **changes):
    """Change the status row of an instance as a conductor commits it; by default no operation works on it.

    Args:
        own: the API of the server, from ``tests.support.servers.in_process_api``.
    """
    reader = own.agents.reader
    known = {"status": "ACTIVE", "task": "", "operation_id": 0, "host": "host-0", "node": "host-0"}

    def commit(current):
        row = next_version(reader(current).status(uuid_bytes(uuid)), **{**known, **changes})
        return current.commit([Item(writes=(), work=(replace_row(row),))])

    assert own.serving.run(commit) == [None]
