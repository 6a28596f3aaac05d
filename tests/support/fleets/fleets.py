"""Small fleets and requests for tests; callers pass only relevant values."""

import uuid
from collections.abc import Sequence

import msgspec
import numpy as np

from roost.engine.columns.apply import apply, occupy, recount_hosts
from roost.engine.columns.state import Group, State
from roost.model import writes
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.image import Image
from roost.model.request import Request
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec

COLUMNS_OF_COUNTS = ("num_instances", "vcpus_used", "used_ram_mb", "used_disk_gb")


def uuid_of(number: int) -> bytes:
    """Return the uuid for a number, always the same one."""
    return uuid.UUID(int=number, version=4).bytes


def uuid_text(number: int) -> str:
    """Return the uuid for a number as text."""
    return str(uuid.UUID(bytes=uuid_of(number)))


def fleet(*facts: HostFacts, aggregates: Sequence[tuple[dict[str, str], Sequence[int]]] = ()) -> State:
    """Return hosts host-1, host-2, … on nodes node-1, …, with identities 101, …; aggregates as (metadata, rows)."""
    state = State()
    for number, one in enumerate(facts, start=1):
        provider = writes.PutProvider(number, uuid_of(number), f"node-{number}", None, number, 1)
        apply(state, provider)
        body = msgspec.Raw(msgspec.msgpack.encode(one))
        apply(state, writes.PutHost(100 + number, number, f"host-{number}", f"node-{number}", body, 1))
    for number, (metadata, _) in enumerate(aggregates, start=1):
        apply(state, writes.PutAggregate(number, uuid_of(1000 + number), f"aggregate-{number}", metadata, 1))
    for row in range(len(facts)):
        joined = [number for number, (_, rows) in enumerate(aggregates, start=1) if row in rows]
        if joined:
            apply(state, writes.PutMembership(row + 1, 0, joined))
    recount_hosts(state)
    return state


def host_view(state: State, rows: Sequence[int] | None = None) -> HostView:
    """Return a view of all hosts, or of the hosts in some rows."""
    return HostView(state, None if rows is None else np.array(rows, dtype=np.intp))


def hosts(**columns: Sequence[float]) -> HostView:
    """Return a view of hosts with the given column values."""
    count = len(next(iter(columns.values())))
    state = fleet(*[HostFacts()] * count)
    for name, values in columns.items():
        state.hosts.columns[name].data[:count] = values
    return HostView(state)


def group(policy: str, members: dict[int, int] | None = None, *, limit: int = 1) -> Group:
    """Return a server group; ``members`` maps host rows to member counts."""
    server_group = Group(group_id=1, uuid=uuid_text(1), policy=policy, limit=limit)
    server_group.members.update(members or {})
    return server_group


def spec(
    extra_specs: dict[str, str] | None = None,
    *,
    image: dict[str, str] | None = None,
    now_s: float = 0.0,
    group: Group | None = None,
    moved_uuid: str | None = None,
    **request: object,
) -> Spec:
    """Return the spec of a request for one small instance; ``image`` are image properties."""
    flavor = Flavor(name="small", vcpus=1, memory_mb=512, extra_specs=extra_specs or {})
    wanted = Request(flavor=flavor, image=None if image is None else Image(properties=image), **request)
    return Spec(wanted, now_s=now_s, group=group, moved_uuid=moved_uuid)


def add_instance(state, row, image):
    """Add an instance with an image to a host; return its consumer id."""
    body = msgspec.json.encode(Image(properties=image))
    number = next((number for number, known in state.images.items() if known == body), len(state.images) + 1)
    apply(state, writes.PutDocument(number, "image", number.to_bytes(16, "big"), body))
    consumer = writes.ConsumerRow(number_of(state), uuid_of(5000 + number_of(state)), "", "")
    instance = writes.InstanceRow(consumer.id, state.hosts.ids[row], 0, number)
    occupy(state, writes.Claim([consumer], [], [instance]))
    return consumer.id


def number_of(state):
    """Return an unused consumer id."""
    return max(state.holders_by_id, default=0) + 1
