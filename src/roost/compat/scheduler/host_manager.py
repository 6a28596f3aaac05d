"""Counterpart of ``nova.scheduler.host_manager``: filters and weighs all hosts."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from roost.compat.config_view import use_settings
from roost.compat.numa import topology_for
from roost.compat.objects import as_request_spec
from roost.compat.scheduler.filters import HostFilterHandler, filter_for
from roost.compat.scheduler.host_state import HostAggregate, HostState, pools_of
from roost.compat.scheduler.weights import HostWeightHandler, WeighedHost, weigher_for
from roost.engine.columns.image_counts import read_image
from roost.engine.columns.state import State
from roost.model.names import uuid_text
from roost.model.settings.roost_settings import Settings
from roost.scheduler import registry
from roost.scheduler.registry import Adapt, RuleClass

__all__ = ["HostAggregate", "HostManager", "HostState", "host_states_of"]


class HostManager:
    """The hosts, and the enabled filters and weighers.

    Args:
        hosts: returns all current hosts, as ``host_states_of`` does for a state.
        settings: select the enabled filters and weighers; default: the default settings.
        filters, weighers: instances or classes, in place of those of the settings.
    """

    host_state_cls = HostState

    def __init__(
        self,
        hosts: Callable[[], Iterable[HostState]],
        *,
        settings: Settings | None = None,
        filters: Iterable[Any] | None = None,
        weighers: Iterable[Any] | None = None,
        adapt: Adapt | None = None,
    ) -> None:
        settings = settings or Settings()
        rules = registry.catalogue(settings.filter_scheduler, adapt=adapt)
        enabled = registry.select_filters(rules, settings.filter_scheduler)
        self._hosts = hosts
        self.filter_handler = HostFilterHandler()
        self.weight_handler = HostWeightHandler()
        self.enabled_filters: list[Any] = (
            [_filter(rule, settings) for rule in enabled] if filters is None else list(filters)
        )
        self.weighers: list[Any] = (
            [_weigher(rule, settings) for rule in rules.weighers] if weighers is None else list(weighers)
        )

    def get_all_host_states(self, context: object = None) -> Iterator[HostState]:
        """Return all hosts, as a one-time iterator."""
        return iter(self._hosts())

    def get_host_states_by_uuids(
        self, context: object, compute_uuids: Iterable[str] | None, spec_obj: Any = None
    ) -> Iterator[HostState]:
        """Return the hosts with these uuids; None: all hosts."""
        uuids = None if compute_uuids is None else set(compute_uuids)
        return (host for host in self._hosts() if uuids is None or host.uuid in uuids)

    def get_filtered_hosts(self, hosts: Iterable[HostState], spec_obj: Any, index: int = 0) -> list[HostState]:
        """Return the hosts that the request allows by name and the filters accept; forced hosts skip the filters."""
        spec = as_request_spec(spec_obj)
        remaining = _filter_by_name(list(hosts), spec)
        is_forced = bool(spec.force_hosts or spec.force_nodes)
        if not remaining or (is_forced and "_nova_check_type" not in spec.scheduler_hints):
            return remaining
        return self.filter_handler.get_filtered_objects(self.enabled_filters, remaining, spec, index) or []

    get_filters_hosts = get_filtered_hosts

    def get_weighed_hosts(self, hosts: Iterable[HostState], spec_obj: Any) -> list[WeighedHost]:
        """Return the hosts with their weights, best first."""
        weighed: list[Any] = self.weight_handler.get_weighed_objects(self.weighers, hosts, as_request_spec(spec_obj))
        return weighed

    get_weighted_hosts = get_weighed_hosts


def _filter(rule: RuleClass, settings: Settings) -> Any:
    """Make a filter of host states; a class for Nova is used directly."""
    kind = getattr(rule, "kind", None)
    if kind is not None and hasattr(kind, "filter_all"):
        use_settings(settings)
        return kind()
    return filter_for(rule)(registry.options_of(rule, settings.tables))


def _weigher(rule: RuleClass, settings: Settings) -> Any:
    """Make a weigher of host states; a class for Nova is used directly."""
    kind = getattr(rule, "kind", None)
    if kind is not None and hasattr(kind, "weigh_objects"):
        use_settings(settings)
        return kind()
    return weigher_for(rule)(registry.options_of(rule, settings.tables))


def _filter_by_name(hosts: list[HostState], spec: Any) -> list[HostState]:
    """Return the hosts that a request allows by name; only the destination and names of nodes are case-sensitive."""
    destination = spec.requested_destination
    if destination is not None and destination.host:
        hosts = [host for host in hosts if host.host == destination.host]
        hosts = [host for host in hosts if not destination.node or host.nodename == destination.node]
    if spec.ignore_hosts:
        ignored = {name.lower() for name in spec.ignore_hosts}
        hosts = [host for host in hosts if host.host.lower() not in ignored]
    if spec.force_hosts:
        forced = {name.lower() for name in spec.force_hosts}
        hosts = [host for host in hosts if host.host.lower() in forced]
    if spec.force_nodes:
        hosts = [host for host in hosts if host.nodename in spec.force_nodes]
    return hosts


def host_states_of(state: State) -> list[HostState]:
    """Return copies of the hosts of a state as host states."""
    hosts = state.hosts
    instances: dict[int, dict[str, Any]] = {}
    for holder in state.holders.values():
        if holder.instance is not None:
            image = read_image(state.images, holder.instance.image_id)
            instances.setdefault(holder.instance.host_id, {})[uuid_text(holder.uuid)] = image
    return [
        _host_state(state, row, instances.get(hosts.ids[row], {})) for row in range(len(hosts)) if hosts.alive.view[row]
    ]


def _host_state(state: State, row: int, instances: dict[str, Any]) -> HostState:
    hosts = state.hosts
    facts = hosts.facts[row]
    number = {name: int(column.view[row]) for name, column in hosts.columns.items()}
    provider_row = int(hosts.provider_row.view[row])
    return HostState(
        host=hosts.names[row],
        nodename=hosts.nodes[row],
        cell_uuid=facts.cell,
        uuid=state.providers.uuids[provider_row],
        hypervisor_hostname=hosts.nodes[row],
        hypervisor_type=facts.hypervisor_type or None,
        hypervisor_version=facts.hypervisor_version or None,
        host_ip=facts.host_ip or None,
        cpu_info=facts.cpu_info or None,
        supported_instances=[list(each) for each in facts.supported_instances],
        total_usable_ram_mb=number["total_usable_ram_mb"],
        free_ram_mb=number["free_ram_mb"],
        total_usable_disk_gb=number["total_usable_disk_gb"],
        free_disk_mb=number["free_disk_mb"],
        disk_mb_used=number["used_disk_gb"] * 1024,
        vcpus_total=number["vcpus_total"],
        vcpus_used=number["vcpus_used"],
        cpu_allocation_ratio=float(hosts.columns["cpu_allocation_ratio"].view[row]),
        num_instances=number["num_instances"],
        num_io_ops=number["num_io_ops"],
        failed_builds=number["failed_builds"],
        stats=dict(facts.stats),
        metrics=dict(facts.metrics),
        pci_stats=pools_of(facts),
        numa_topology=topology_for(facts),
        service={
            "disabled": facts.is_disabled,
            "forced_down": facts.is_forced_down,
            "last_seen_up": facts.reported_at_s,
        },
        aggregates=[
            HostAggregate(
                name=state.aggregate_names[aggregate],
                uuid=state.aggregates.name_of(aggregate),
                metadata=dict(state.metadata[aggregate]),
            )
            for aggregate in sorted(state.membership.labels_of(provider_row))
            if aggregate in state.metadata
        ],
        instances=instances,
        rack=facts.rack,
    )
