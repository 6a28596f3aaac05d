"""The picture of one cell: its compute nodes, services and instances, read again as they change."""

import math
import threading
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

import msgspec
from sqlalchemy import Connection

from roost.errors import Unavailable
from roost.model.host import HostFacts
from roost.nova.database.cell_mappings import CellMapping
from roost.nova.database.compute_nodes import NodeMark, NodeRow, read_node_marks, read_nodes
from roost.nova.database.database_link import DatabaseLink, moment_of
from roost.nova.database.instance_places import PARTS, InstancePlaces
from roost.nova.database.nova_fleet import ComputeNode, NovaInstance
from roost.nova.database.service_rows import ServiceRow, down_since, read_services
from roost.observe import log

# Rows carry the time before their commit, and clocks of computes differ a little.
_OVERLAP_S = 5.0
# After this time, everything is compared, so that deletions and late commits are found.
COMPARE_EVERY_S = 60.0
# Nova stores whole seconds: an update in the second of a read may not show in the time.
_TICK_S = 1.0


class CellChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a cell since its last answer."""

    computes: tuple[ComputeNode, ...] = ()
    gone: tuple[str, ...] = ()
    instances: tuple[NovaInstance, ...] = ()
    unchanged: tuple[NovaInstance, ...] = ()
    gone_instances: tuple[str, ...] = ()


class CellReader:
    """Reads one cell, in a thread of its own. Its picture belongs to that thread while it runs.

    Args:
        mapping: the cell; a cell with another database needs another reader.
        timeout_s: limit of a connection attempt, and of each answer, in seconds.
        down_time_s: a service that has not reported for longer is down.
    """

    def __init__(self, mapping: CellMapping, *, timeout_s: float, down_time_s: float) -> None:
        self.mapping = mapping
        self.is_silent = False  # after its last read
        self.service_version_min = 0  # of its services; 0: there are none
        self._timeout_s, self._down_time_s = timeout_s, down_time_s
        self._link = self._open()
        self._thread: threading.Thread | None = None
        self._result: CellChanges | BaseException | None = None
        self._wants_all = False
        self._mapped: frozenset[str] = frozenset()
        self._forget()

    def _open(self) -> DatabaseLink:
        return DatabaseLink(self.mapping.database_url, subject=self.mapping.subject, timeout_s=self._timeout_s)

    def _forget(self) -> None:
        self._read_at_s: float | None = None  # None: never
        self._compared_at_s: float | None = None  # None: compare everything at the next read
        self._parts_at_s = 0.0
        self._nodes: dict[int, NodeRow] = {}
        self._marks: dict[int, NodeMark] = {}
        self._services: dict[int, ServiceRow] = {}
        self._service_of_host: dict[str, int] = {}
        self._down: dict[int, float] = {}  # last report of dead services, by id
        self._computes: dict[str, ComputeNode] = {}  # by uuid, as returned
        self._places = InstancePlaces(self.mapping.uuid)

    def follow(self, mapping: CellMapping) -> None:
        """Use a changed mapping. With another URL, compare everything at the next read."""
        before, self.mapping = self.mapping, mapping
        if mapping.database_url != before.database_url:
            self._link.close()
            self._link = self._open()
            self._compared_at_s, self._marks = None, {}

    def start(self, *, now_s: float, mapped: frozenset[str], wants_all: bool) -> None:
        """Start a read in a thread, unless the last one still runs.

        Args:
            mapped: hosts that the API database maps to this cell.
            wants_all: return everything.
        """
        self._wants_all |= wants_all
        if self._thread is not None:
            return
        wants_all, self._wants_all = self._wants_all, False

        def run() -> None:
            try:
                self._result = self.read(now_s=now_s, mapped=mapped, wants_all=wants_all)
            except BaseException as error:  # noqa: BLE001  # the thread that takes the result raises it
                self._result = error

        # A daemon, because a server that keeps its connections but does not answer must not delay the end.
        self._thread = threading.Thread(target=run, name=f"nova-cell-{self.mapping.uuid}", daemon=True)
        self._thread.start()

    def take(self, *, wait_s: float) -> CellChanges | None:
        """Return the result of the started read; None: it is not there in time.

        Raises:
            Unavailable: the database does not answer, or refuses.
            BadSettings: the URL is invalid, or its driver is not installed.
        """
        assert self._thread is not None, "start a read first"
        self._thread.join(wait_s)
        if self._thread.is_alive():
            return None
        self._thread = None
        result, self._result = self._result, None
        if isinstance(result, BaseException):
            raise result
        return result

    def read(self, *, now_s: float, mapped: frozenset[str], wants_all: bool) -> CellChanges:
        """Read the changes since the last answer, in this thread. See ``start``."""
        if self.mapping.is_template:
            raise Unavailable(
                f"{self.mapping.subject} cannot be read: its URL is a template that [database] connection cannot fill"
            )
        if wants_all:
            self._forget()
        last_s = self._compared_at_s
        compares = last_s is None or not 0 <= now_s - last_s < COMPARE_EVERY_S
        since = None if self._read_at_s is None else moment_of(self._read_at_s - _OVERLAP_S)
        rows_since = None if compares else since
        with self._link.read() as connection:
            services = read_services(connection, since=rows_since)
            marks = read_node_marks(connection, since=rows_since)
            changed = [each.id for each in marks if isinstance(each, NodeMark) and self._may_differ(each)]
            nodes = dict(read_nodes(connection, changed, cell=self.mapping.uuid))
            self._read_instances(connection, since=since, now_s=now_s, compares_all=last_s is None)
        # The picture changes only now: a read that fails is repeated from the last moment.
        self._read_at_s = now_s
        if compares:
            self._compared_at_s = now_s
        hosts = self._take_services(services, is_complete=compares, now_s=now_s)
        gone = self._take_nodes(nodes, marks, is_complete=compares)
        if mapped is not self._mapped:
            hosts |= mapped ^ self._mapped
            self._mapped = mapped
        instances, unchanged, gone_instances = self._places.take_changes()
        return CellChanges(
            computes=tuple(self._refresh_computes(nodes, hosts)),
            gone=tuple(sorted(gone)),
            instances=instances,
            unchanged=unchanged,
            gone_instances=gone_instances,
        )

    def has_compute(self, uuid: str) -> bool:
        """Return whether the cell has a compute node."""
        return uuid in self._computes

    def has_instance(self, uuid: str) -> bool:
        """Return whether the cell has an instance on a host."""
        return uuid in self._places

    def leave(self) -> CellChanges:
        """Close the connection; return the changes if the whole cell is gone."""
        late: CellChanges | None = None
        if self._thread is not None:
            with suppress(Exception):  # The read failed: its part of the picture is unchanged.
                late = self.take(wait_s=self._timeout_s)
        self.close()
        late = late or CellChanges()
        return CellChanges(
            gone=(*late.gone, *self._computes), gone_instances=(*late.gone_instances, *self._places.uuids())
        )

    def close(self) -> None:
        """Close the connection, unless a read still uses it."""
        if self._thread is None or not self._thread.is_alive():
            self._link.close()

    def _take_services(self, found: list[ServiceRow | int], *, is_complete: bool, now_s: float) -> set[str]:
        """Apply rows of services, and return the hosts whose service has changed."""
        hosts: set[str] = set()
        rows = [each for each in found if isinstance(each, ServiceRow)]
        dropped = {each for each in found if isinstance(each, int)}
        if is_complete:
            dropped = self._services.keys() - {each.id for each in rows}
        for number in dropped & self._services.keys():
            service = self._services.pop(number)
            self._down.pop(number, None)
            if self._service_of_host.get(service.host) == number:
                del self._service_of_host[service.host]
            hosts.add(service.host)
        for service in rows:
            before = self._services.get(service.id)
            self._services[service.id] = service
            self._service_of_host[service.host] = service.id
            if before is None or _state_of(before) != _state_of(service):
                hosts.add(service.host)
        for number, service in self._services.items():
            down_s = down_since(service, now_s=now_s, down_time_s=self._down_time_s)
            if down_s is None and number in self._down:
                del self._down[number]
                hosts.add(service.host)
            elif down_s is not None and number not in self._down:
                self._down[number] = down_s
                hosts.add(service.host)
        self.service_version_min = min((each.version for each in self._services.values()), default=0)
        return hosts

    def _take_nodes(self, nodes: dict[int, NodeRow], found: list[NodeMark | int], *, is_complete: bool) -> set[str]:
        """Apply rows of compute nodes, and return the uuids of those that are gone."""
        marks = {each.id: each for each in found if isinstance(each, NodeMark)}
        dropped = {each for each in found if isinstance(each, int)}
        if is_complete:
            dropped = self._nodes.keys() - marks.keys()
        gone = set()
        for number in dropped & self._nodes.keys():
            gone.add(self._nodes.pop(number).uuid)
            self._marks.pop(number, None)
        for number, node in nodes.items():
            before = self._nodes.get(number)
            if before is not None and before.uuid != node.uuid:
                gone.add(before.uuid)
            self._report_problem(before, node)
            self._nodes[number], self._marks[number] = node, marks[number]
        # A node may return in a new row with its old uuid.
        gone = gone & self._computes.keys() - {each.uuid for each in self._nodes.values()} if gone else gone
        for uuid in gone:
            del self._computes[uuid]
        return gone

    def _may_differ(self, mark: NodeMark) -> bool:
        if self._read_at_s is None or self._marks.get(mark.id) != mark:
            return True
        return mark.updated_at is not None and mark.updated_at >= moment_of(self._read_at_s - _TICK_S)

    def _read_instances(
        self, connection: Connection, *, since: datetime | None, now_s: float, compares_all: bool
    ) -> None:
        count = PARTS
        if since is not None and not compares_all:
            self._places.read_changes(connection, since=since)
            elapsed_s = now_s - self._parts_at_s
            if 0 <= elapsed_s < COMPARE_EVERY_S:
                count = math.ceil(PARTS * elapsed_s / COMPARE_EVERY_S)
        if count:
            self._places.compare_parts(connection, count=count)
            self._parts_at_s = now_s

    def _refresh_computes(self, ids: Iterable[int], hosts: set[str]) -> list[ComputeNode]:
        numbers = set(ids)
        if hosts:
            numbers |= {number for number, node in self._nodes.items() if self._host_of(node) in hosts}
        found = []
        for number in sorted(numbers):
            compute = self._compute_of(self._nodes[number])
            if compute.uuid and self._computes.get(compute.uuid) != compute:
                self._computes[compute.uuid] = compute
                found.append(compute)
        return found

    def _compute_of(self, node: NodeRow) -> ComputeNode:
        host = self._host_of(node)
        service = self._services.get(self._service_of_host.get(host, -1))
        is_mapped = host in self._mapped
        facts = node.facts
        if service is not None:
            facts = _with_service(facts, service, self._down.get(service.id))
        return ComputeNode(
            uuid=node.uuid,
            host=host,
            node=node.node,
            cell=self.mapping.uuid,
            facts=facts,
            is_mapped=is_mapped,
            is_ready=is_mapped and node.is_sized and not node.problem and service is not None,
        )

    def _host_of(self, node: NodeRow) -> str:
        if node.host is not None:
            return node.host
        service = self._services.get(-1 if node.service_id is None else node.service_id)
        return "" if service is None else service.host

    def _report_problem(self, before: NodeRow | None, node: NodeRow) -> None:
        if node.problem and (before is None or before.problem != node.problem):
            log.event(
                "compute_node_invalid",
                cell=self.mapping.cell.name or self.mapping.uuid,
                host=node.host,
                node=node.node,
                provider=node.uuid,
                problem=node.problem,
            )


def _state_of(service: ServiceRow) -> tuple[object, ...]:
    """Return the fields that facts have."""
    return service.host, service.is_disabled, service.disabled_reason, service.is_forced_down


def _with_service(facts: HostFacts, service: ServiceRow, down_s: float | None) -> HostFacts:
    return msgspec.structs.replace(
        facts,
        is_disabled=service.is_disabled,
        disabled_reason=service.disabled_reason if service.is_disabled else "",
        is_forced_down=service.is_forced_down,
        reported_at_s=down_s,
    )
