"""Members of a server group that have no allocations: their build awaits a decision, or they are offloaded."""

from collections.abc import Container

from roost.conductor.operation.stored_request import Documents, group_of
from roost.errors import Conflict
from roost.ports import WorkReader

_STATUSES = ("BUILD", "SHELVED_OFFLOADED")
_CHUNK = 500
# Instances without a host that one count reads at most: it holds the thread that decides.
_EXAMINED_MAX = 10_000


def count_waiting(
    reader: WorkReader,
    documents: Documents,
    group_uuid: str,
    *,
    placed: Container[bytes],
    project_id: str | None = None,
) -> int:
    """Count the instances without a host that will join a server group.

    Args:
        placed: the uuids of consumers with allocations, which do not count.
        project_id: count only instances of this project.

    Raises:
        Conflict: more than 10,000 instances have no host.
        StoreBroken: the request of an instance cannot be read.
    """
    count, examined, groups = 0, 0, dict[int, str | None]()  # number of a request -> its group
    for status in _STATUSES:
        after_id = 0
        while chunk := reader.statuses(after_id=after_id, limit=_CHUNK, project_id=project_id, host="", status=status):
            after_id = chunk[-1].id
            examined += len(chunk)
            if examined > _EXAMINED_MAX:
                raise Conflict(f"more than {_EXAMINED_MAX:,} instances have no host: delete some of them first")
            for row in chunk:
                if row.uuid in placed:
                    continue
                if row.request_id not in groups:
                    groups[row.request_id] = group_of(documents, row)
                count += groups[row.request_id] == group_uuid
    return count
