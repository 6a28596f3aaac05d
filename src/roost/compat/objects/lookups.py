"""Nova's look-up methods, answered from the columns: aggregates, instances, groups, hosts and services."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from roost.compat import exception
from roost.compat.objects.current_fleet import current_fleet
from roost.compat.objects.host_records import Aggregate, Instance
from roost.compat.objects.server_group import InstanceGroup
from roost.engine.columns.state import Group
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.spec import Spec


class Fleet:
    """All hosts at one moment, with their instances, aggregates and groups."""

    def __init__(self, hosts: HostView, spec: Spec, rows_of: Callable[[HostView, Spec], Sequence[Any]]) -> None:
        self._hosts = hosts.all_hosts()
        self._spec = spec
        self._rows_of = rows_of
        self.now_s = spec.now_s

    @functools.cached_property
    def rows(self) -> list[Any]:
        """One record per node of the fleet."""
        alive = self._hosts.alive().tolist()
        return [row for row, is_alive in zip(self._rows_of(self._hosts, self._spec), alive, strict=True) if is_alive]

    @functools.cached_property
    def by_host(self) -> dict[str, list[Any]]:
        """The nodes of each host (compute service), by host name."""
        rows_by_host: dict[str, list[Any]] = {}
        for row in self.rows:
            rows_by_host.setdefault(row.host, []).append(row)
        return rows_by_host

    @functools.cached_property
    def aggregates(self) -> dict[str, Aggregate]:
        """All aggregates with hosts, by uuid, with the names of the hosts."""
        by_uuid: dict[str, Aggregate] = {}
        for row in self.rows:
            for each in row.aggregates:
                aggregate = by_uuid.setdefault(each.uuid, each)
                if row.host not in aggregate.hosts:
                    aggregate.hosts.append(row.host)
        return by_uuid

    @functools.cached_property
    def instances(self) -> dict[str, Instance]:
        """All instances by uuid."""
        return {uuid: each for row in self.rows for uuid, each in row.instances.items()}

    def groups(self) -> Iterator[InstanceGroup]:
        """Yield every server group."""
        return map(self._group, self._hosts.groups())

    def _group(self, group: Group) -> InstanceGroup:
        return InstanceGroup(
            uuid=group.uuid,
            name=group.name,
            policy=group.policy,
            members=self._hosts.instances_of(group),
            hosts=self._hosts.hosts_of(group),
            rules={"max_server_per_host": group.limit},
        )


class _List(list[Any]):
    """A list with the constructor of Nova's object lists."""

    def __init__(self, context: object = None, objects: Iterable[Any] = ()) -> None:  # Nova's signature.
        super().__init__(objects)

    @property
    def objects(self) -> list[Any]:
        """The list itself, under Nova's name."""
        return self


class AggregateList(_List):
    """Aggregates."""

    @classmethod
    def get_all(cls, context: object) -> "AggregateList":
        """Return all aggregates with hosts."""
        return cls(context, current_fleet().aggregates.values())

    @classmethod
    def get_by_host(cls, context: object, host: str, key: str | None = None) -> "AggregateList":
        """Return the aggregates of a host, optionally only those with a metadata key."""
        aggregates = (each for each in current_fleet().aggregates.values() if host in each.hosts)
        return cls(context, (each for each in aggregates if key is None or key in each.metadata))

    @classmethod
    def get_by_metadata_key(cls, context: object, key: str, hosts: Iterable[str] | None = None) -> "AggregateList":
        """Return the aggregates with a metadata key, optionally only those that contain one of ``hosts``."""
        host_names = None if hosts is None else set(hosts)
        aggregates = (each for each in current_fleet().aggregates.values() if key in each.metadata)
        return cls(context, (each for each in aggregates if host_names is None or host_names & set(each.hosts)))

    @classmethod
    def get_by_metadata(cls, context: object, key: str | None = None, value: str | None = None) -> "AggregateList":
        """Return the aggregates with a metadata entry of this key and value; None matches any."""
        return cls(
            context,
            (
                each
                for each in current_fleet().aggregates.values()
                if any(key in (None, name) and value in (None, text) for name, text in each.metadata.items())
            ),
        )


class InstanceList(_List):
    """Instances on hosts."""

    @classmethod
    def get_by_host(cls, context: object, host: str, *_more: object, **_options: object) -> "InstanceList":
        """Return the instances on all nodes of a host."""
        return cls(context, (each for row in current_fleet().by_host.get(host, ()) for each in row.instances.values()))

    @classmethod
    def get_by_host_and_node(
        cls, context: object, host: str, node: str, *_more: object, **_options: object
    ) -> "InstanceList":
        """Return the instances on one node of a host."""
        rows = (row for row in current_fleet().by_host.get(host, ()) if row.nodename == node)
        return cls(context, (each for row in rows for each in row.instances.values()))

    @classmethod
    def get_uuids_by_host(cls, context: object, host: str) -> list[str]:
        """Return the uuids of the instances on a host."""
        return [each.uuid for each in cls.get_by_host(context, host)]

    @classmethod
    def get_all(cls, context: object, *_more: object, **_options: object) -> "InstanceList":
        """Return all instances."""
        return cls(context, current_fleet().instances.values())

    def fill_metadata(self) -> None:
        """Do nothing: instances already have their metadata."""


class ComputeNodeList(_List):
    """Compute nodes."""

    @classmethod
    def get_all(cls, context: object) -> "ComputeNodeList":
        """Return all nodes."""
        return cls(context, map(ComputeNode, current_fleet().rows))

    @classmethod
    def get_all_by_host(cls, context: object, host: str) -> "ComputeNodeList":
        """Return the nodes of a host.

        Raises:
            ComputeHostNotFound: the host does not exist.
        """
        rows = current_fleet().by_host.get(host)
        if rows is None:
            raise exception.ComputeHostNotFound(host=host)
        return cls(context, map(ComputeNode, rows))


class ComputeNode:
    """A compute node with the attributes of Nova's ComputeNode and HostState."""

    def __init__(self, row: Any) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Any:
        row = self._row
        match name:
            case "vcpus":
                return row.vcpus_total
            case "memory_mb":
                return row.total_usable_ram_mb
            case "memory_mb_used":
                return row.total_usable_ram_mb - row.free_ram_mb
            case "local_gb":
                return row.total_usable_disk_gb
            case "local_gb_used":
                return row.disk_mb_used // 1024
            case "free_disk_gb":
                return row.free_disk_mb // 1024
            case "running_vms":
                return row.num_instances
            case "pci_device_pools":
                return [] if row.pci_stats is None else row.pci_stats.pools
            case _:
                return getattr(row, name)

    @classmethod
    def get_by_host_and_nodename(cls, context: object, host: str, nodename: str) -> "ComputeNode":
        """Return a node.

        Raises:
            ComputeHostNotFound: the node does not exist.
        """
        rows = [row for row in current_fleet().by_host.get(host, ()) if row.nodename == nodename]
        if not rows:
            raise exception.ComputeHostNotFound(host=host)
        return cls(rows[0])

    @classmethod
    def get_first_node_by_host_for_old_compat(cls, context: object, host: str, *_more: object) -> "ComputeNode":
        """Return the first node of a host.

        Raises:
            ComputeHostNotFound: the host does not exist.
        """
        first: ComputeNode = ComputeNodeList.get_all_by_host(context, host)[0]
        return first


class Service:
    """The service of a host."""

    def __init__(self, row: Any) -> None:
        self._fields: dict[str, Any] = row.service
        self.uuid = row.uuid

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._fields:
            raise AttributeError(f"a service has no {name}")
        return self._fields[name]

    @classmethod
    def get_by_compute_host(cls, context: object, host: str, *_more: object) -> "Service":
        """Return the service of a host.

        Raises:
            ServiceNotFound: the host does not exist.
        """
        rows = current_fleet().by_host.get(host)
        if not rows:
            raise exception.ServiceNotFound(service_id=host)
        return cls(rows[0])

    get_by_host_and_binary = get_by_compute_host


class ServiceList(_List):
    """Services of hosts."""

    @classmethod
    def get_all(cls, context: object, *_more: object, **_options: object) -> "ServiceList":
        """Return all services."""
        return cls(context, (Service(rows[0]) for rows in current_fleet().by_host.values()))

    @classmethod
    def get_by_binary(cls, context: object, binary: str, *_more: object, **_options: object) -> "ServiceList":
        """Return the services of a binary; only ``nova-compute`` has services."""
        return cls.get_all(context) if binary == "nova-compute" else cls(context)


class InstanceGroupList(_List):
    """Server groups."""

    @classmethod
    def get_all(cls, context: object) -> "InstanceGroupList":
        """Return all server groups."""
        return cls(context, current_fleet().groups())
