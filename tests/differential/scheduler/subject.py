"""Roost's results for a pair in two ways: its rules on columns, and the same rules on host states."""

import itertools
import time
import uuid
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np

from roost.compat.numa import topology_from
from roost.compat.objects import InstanceGroup, RequestSpec
from roost.compat.scheduler.filters import HostFilterHandler, filter_for
from roost.compat.scheduler.host_state import HostAggregate, HostState, facts_of
from roost.compat.scheduler.weights import HostWeightHandler, WeighedHost, weigher_for
from roost.compat.weights import normalize
from roost.engine.columns.apply import apply, override_host, recount_hosts
from roost.engine.columns.state import Group, State
from roost.engine.ranking import ranks
from roost.errors import BadRequest
from roost.model import writes
from roost.model.devices.pci import PciRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts, PciPool
from roost.model.image import Image
from roost.model.request import Destination, Network, Request
from roost.model.settings.roost_settings import Pci
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import JudgesCandidates, SupportsLimits, implements
from roost.scheduler.framework.spec import Spec
from roost.scheduler.pipeline.consumption import ReportedDemand
from roost.scheduler.query.pci_requests import PciAliases
from roost.scheduler.registry import RuleClass, builtin_filters, builtin_weighers, options_of
from roost.scheduler.shape.score_table import ScoreTable
from tests.differential.scheduler.hosts import ATTRIBUTES

Json = dict[str, Any]
NOW_S = 1_900_000_000.0
INSTANCES_MAX = 3

FILTERS: dict[str, RuleClass] = {rule.nova_name: rule for rule in builtin_filters() if rule.nova_name}
WEIGHERS: dict[str, RuleClass] = {rule.nova_name: rule for rule in builtin_weighers() if rule.nova_name}

# Attributes of a host state that are columns in Roost.
_COLUMNS = (
    "vcpus_total",
    "vcpus_used",
    "cpu_allocation_ratio",
    "total_usable_ram_mb",
    "free_ram_mb",
    "total_usable_disk_gb",
    "free_disk_mb",
    "num_instances",
    "num_io_ops",
    "failed_builds",
)


class Columns:
    """A pair as columns, for the rules of real decisions."""

    def __init__(self, pair: Json) -> None:
        self._tables = pair["options"]
        self.state = _state(pair)
        self.view = HostView(self.state)
        self._ways = [host["candidates"] for host in pair["hosts"]]
        body = pair["request"]
        request = _request(body)
        self.spec = Spec(
            request,
            now_s=NOW_S,
            group=_group(body["group"], pair["hosts"]),
            moved_uuid=body["instance_uuid"],
            pci_requests=_devices(request, pair),
        )

    def passing(self, name: str) -> list[bool]:
        """Return for each host whether it passes a filter."""
        rule = FILTERS[name](options_of(FILTERS[name], self._tables))
        if (self.spec.is_rebuild and not rule.run_on_rebuild) or not rule.concerns(self.spec):
            return [True] * len(self.view)
        verdicts: list[bool] = rule.keep(self.view, self.spec).tolist()
        if implements(rule, JudgesCandidates):
            for at, ways in enumerate(self._ways):
                accepted = (rule.accepts(self.view, self.spec, at=at, mappings=mappings) for mappings in ways)
                verdicts[at] = any(accepted) if ways else verdicts[at]
        return verdicts

    def refusal(self, name: str) -> str:
        """Return the reason that a filter refuses the request, or an empty string."""
        try:
            FILTERS[name](options_of(FILTERS[name], self._tables)).check(self.spec)
        except BadRequest as error:
            return str(error)
        return ""

    def weights(self, name: str) -> Json:
        """Return the weights of a weigher for each host."""
        rule = WEIGHERS[name](options_of(WEIGHERS[name], self._tables))
        raw = rule.raw(self.view, self.spec) if rule.concerns(self.spec) else np.zeros(len(self.view))
        raw = ranks.clamp(raw, minval=rule.minval, maxval=rule.maxval)
        scale = ranks.scale_of(raw, weigher=name, minval=rule.minval, maxval=rule.maxval, multiplier=1.0)
        normalised = ranks.normalise(raw, low=scale.low, high=scale.high)
        totals = self._score_table([name]).weigh(None, self.spec).totals
        return {"raw": raw.tolist(), "normalised": normalised.tolist(), "totals": totals.tolist()}

    def chosen(self, enabled: list[str], weighers: list[str]) -> Json:
        """Return the hosts that pass all of some filters, with their sums."""
        passing = np.ones(len(self.view), dtype=np.bool_)
        for name in enabled:
            passing &= np.array(self.passing(name), dtype=np.bool_)
        rows = np.flatnonzero(passing)
        if len(rows) < 2:
            return {"survivors": rows.tolist(), "totals": [0.0] * len(rows)}
        totals = self._score_table(weighers).weigh(rows, self.spec).totals
        return {"survivors": rows.tolist(), "totals": totals.tolist()}

    def consumed(self, names: list[str], at: int) -> list[Json]:
        """Consume a host for instances of one request while it passes; return its use after each instance."""
        hosts, found = self.state.hosts, []
        alone = self.view.subset(np.array([at], dtype=np.intp))
        rules = [FILTERS[name](options_of(FILTERS[name], self._tables)) for name in names]
        rules = [rule for rule in rules if rule.concerns(self.spec)]
        demand = ReportedDemand(self.spec.request, self.spec.pci_requests)
        instances = int(hosts.column("num_instances")[at])
        while len(found) < INSTANCES_MAX and all(self.passing(name)[at] for name in names):
            ways = [
                mappings
                for mappings in self._ways[at] or [{}]
                if all(rule.accepts(alone, self.spec, at=0, mappings=mappings) for rule in rules)
            ]
            if not ways:
                break
            limits: Json = {}
            for rule in rules:
                limits.update(rule.limits(alone, self.spec)[0] if implements(rule, SupportsLimits) else {})
            hosts.consume(at, demand.take_from(hosts.facts[at], limits=limits, mappings=ways[0]))
            operations = int(hosts.column("num_io_ops")[at])
            found.append(_in_use(hosts.facts[at], operations=operations, instances=instances + len(found) + 1))
        hosts.restore()
        return found

    def _score_table(self, names: list[str]) -> ScoreTable:
        rules = [WEIGHERS[name](options_of(WEIGHERS[name], self._tables)) for name in names]
        return ScoreTable(self.state, self.spec, [rule for rule in rules if rule.concerns(self.spec)])


class HostStates:
    """A pair as host states, for the classes that replace those of the reference."""

    def __init__(self, pair: Json) -> None:
        self._pair, self._tables = pair, pair["options"]
        labels = {name: HostAggregate(name=name, metadata=dict(table)) for name, table in pair["aggregates"].items()}
        self._states = [_host_state(host, labels) for host in pair["hosts"]]
        self._spec = _request_spec(pair)

    def passing(self, name: str) -> list[bool]:
        """Return for each host whether it passes a filter."""
        left = {id(host) for host in self._left([name])}
        return [id(host) in left for host in self._states]

    def weights(self, name: str) -> Json:
        """Return the weights of a weigher for each host."""
        weigher = self._weigher(name)
        raw = weigher.weigh_objects([WeighedHost(host, 0.0) for host in self._states], self._spec)
        normalised = normalize(raw, weigher.minval, weigher.maxval)
        return {"raw": raw, "normalised": list(normalised), "totals": self._totals([name], self._states)}

    def chosen(self, enabled: list[str], weighers: list[str]) -> Json:
        """Return the hosts that pass all of some filters, with their sums."""
        numbers = {id(host): at for at, host in enumerate(self._states)}
        left = self._left(enabled)
        return {"survivors": [numbers[id(host)] for host in left], "totals": self._totals(weighers, left)}

    def consumed(self, names: list[str], at: int) -> list[Json]:
        """Consume a host for instances of one request while it passes; return its use after each instance."""
        state = _host_state(self._pair["hosts"][at], {})
        spec, found = _request_spec(self._pair), []
        filters = [filter_for(FILTERS[name])(options_of(FILTERS[name], self._tables)) for name in names]
        while len(found) < INSTANCES_MAX:
            candidates = list(state.allocation_candidates)
            if not HostFilterHandler().get_filtered_objects(filters, [state], spec):
                break
            state.consume_from_request(spec)
            state.allocation_candidates = candidates
            found.append(_in_use(facts_of(state), operations=state.num_io_ops, instances=state.num_instances))
        return found

    def _left(self, names: list[str]) -> list[HostState]:
        filters = [filter_for(FILTERS[name])(options_of(FILTERS[name], self._tables)) for name in names]
        return HostFilterHandler().get_filtered_objects(filters, list(self._states), self._spec) or []

    def _weigher(self, name: str) -> Any:
        return weigher_for(WEIGHERS[name])(options_of(WEIGHERS[name], self._tables))

    def _totals(self, names: list[str], states: list[HostState]) -> list[float]:
        weighers = [self._weigher(name) for name in names]
        found = HostWeightHandler().get_weighed_objects(weighers, list(states), self._spec)
        weights = {id(each.obj): each.weight for each in found}
        return [weights[id(host)] for host in states]


def _in_use(facts: HostFacts, *, operations: int, instances: int) -> Json:
    """Return the resources of a host that instances use, in the form of the reference."""
    cells = () if facts.numa is None else facts.numa.cells
    return {
        "num_io_ops": operations,
        "num_instances": instances,
        "cells": [
            [
                cell.id,
                cell.cpu_usage,
                cell.memory_usage,
                list(cell.pinned_cpus),
                [pages.used for pages in cell.mempages],
            ]
            for cell in cells
        ],
        "devices": sorted([_device_of(pool), pool.count] for pool in facts.pci_pools if pool.count),
    }


def _device_of(pool: PciPool) -> list[str]:
    provider = pool.rp_uuids[0] if pool.rp_uuids else None
    network = pool.tags.get("physical_network")
    values = (pool.vendor_id, pool.product_id, pool.numa_node, pool.dev_type, provider, network)
    return list(map(str, values))


def _state(pair: Json) -> State:
    state = State()
    for number, name in enumerate(("VCPU", "MEMORY_MB", "DISK_GB")):
        apply(state, writes.PutSymbol("resource_class", number, name))
    numbers = {name: number for number, name in enumerate(pair["aggregates"], start=1)}
    for name, number in numbers.items():
        apply(state, writes.PutAggregate(number, uuid.uuid4().bytes, name, pair["aggregates"][name], 1))
    for number, host in enumerate(pair["hosts"], start=1):
        apply(state, writes.PutProvider(number, uuid.UUID(host["uuid"]).bytes, f"node {number}", None, number, 1))
        facts = msgspec.Raw(msgspec.msgpack.encode(_facts(host)))
        apply(state, writes.PutHost(number, number, host["host"], host["nodename"], facts, 1))
        aggregate_ids = [numbers[name] for name in host["aggregates"] if name in numbers]
        if aggregate_ids:
            apply(state, writes.PutMembership(number, 0, aggregate_ids))
        for at, instance in enumerate(host["instances"]):
            consumer = writes.ConsumerRow(1000 * number + at, uuid.UUID(instance).bytes, "", "")
            image_id = 0
            if at < len(host["images"]):
                image_id = consumer.id
                image = msgspec.json.encode(Image(properties=host["images"][at]))
                apply(state, writes.PutDocument(image_id, "image", image_id.to_bytes(16, "big"), image))
            row = writes.InstanceRow(consumer.id, number, flavor_id=1, image_id=image_id)
            apply(state, writes.Claim([consumer], [], [row]))
    recount_hosts(state)
    for row, host in enumerate(pair["hosts"]):
        columns = {name: host[name] for name in _COLUMNS}
        columns["used_ram_mb"] = host["total_usable_ram_mb"] - host["free_ram_mb"]
        columns["used_disk_gb"] = host["disk_mb_used"] / 1024
        columns["hypervisor_version"] = host["hypervisor_version"] or 0
        ratios = {"MEMORY_MB": host["ram_allocation_ratio"], "DISK_GB": host["disk_allocation_ratio"]}
        override_host(state, row, columns, ratios=ratios)
    return state


def _facts(host: Json) -> HostFacts:
    facts = {
        "hypervisor_type": host["hypervisor_type"] or "",
        "hypervisor_version": host["hypervisor_version"] or 0,
        "supported_instances": host["supported_instances"],
        "cpu_info": host["cpu_info"],
        "stats": host["stats"],
        "metrics": host["metrics"],
        "host_ip": host["host_ip"] or "",
        "cell": host["cell_uuid"],
        "is_disabled": host["is_disabled"],
        "is_forced_down": host["is_forced_down"],
        "reported_at_s": NOW_S - host["age_s"],
        "pci_pools": [_pool(pool) for pool in host["pci_pools"]],
        "numa": msgspec.to_builtins(topology_from(_topology(host))),
    }
    # No rule reads fields that host facts do not have yet.
    return msgspec.convert({name: facts[name] for name in facts if name in HostFacts.__struct_fields__}, HostFacts)


def _pool(pool: Json) -> Json:
    """Return a pool in the form of host facts, where the tags of its kind and provider are fields."""
    tags = dict(pool["tags"])
    fields = {name: each for name, each in pool.items() if name != "tags"}
    provider = tags.pop("rp_uuid", None)
    return {
        **fields,
        "dev_type": tags.pop("dev_type", "type-PCI"),
        "tags": tags,
        "rp_uuids": [] if provider is None else [provider],
    }


def _pools(host: Json) -> list[Json]:
    return [{name: each for name, each in pool.items() if name != "tags"} | pool["tags"] for pool in host["pci_pools"]]


def _topology(host: Json) -> SimpleNamespace | None:
    """Return the NUMA cells of a host with the reference's names."""
    cells = [
        SimpleNamespace(
            **{
                **cell,
                "mempages": [SimpleNamespace(**pages) for pages in cell["mempages"]],
                "network_metadata": SimpleNamespace(physnets=cell["physnets"], tunneled=cell["tunneled"]),
            }
        )
        for cell in host["numa_cells"]
    ]
    return SimpleNamespace(cells=cells) if cells else None


def _host_state(host: Json, labels: dict[str, HostAggregate]) -> HostState:
    state = HostState(host["host"], host["nodename"])
    for name in ATTRIBUTES:
        setattr(state, name, host[name])
    state.cpu_info = host["cpu_info"] or None
    state.stats, state.metrics = dict(host["stats"]), dict(host["metrics"])
    state.aggregates = [labels[name] for name in host["aggregates"] if name in labels]
    images = (SimpleNamespace(properties=properties) for properties in host["images"])
    state.instances = dict(itertools.zip_longest(host["instances"], images))
    state.allocation_candidates = [{"mappings": mappings} for mappings in host["candidates"]]
    state.pci_stats = _pools(host)
    state.numa_topology = _topology(host)
    # Time passes before the check, and a host at the limit of its age must not exceed it.
    last_seen_up = time.time() - host["age_s"] + (0.5 if host["age_s"] > 0 else 0.0)
    state.service = {
        "disabled": host["is_disabled"],
        "forced_down": host["is_forced_down"],
        "last_seen_up": last_seen_up,
    }
    return state


def _request(body: Json) -> Request:
    destination = body["destination"]
    return Request(
        flavor=msgspec.convert(body["flavor"], Flavor),
        image=None if body["image"] is None else msgspec.convert(body["image"], Image),
        hints=body["hints"],
        project_id=body["project_id"],
        destination=None if destination is None else msgspec.convert(destination, Destination),
        networks=_networks(body["network"]),
        pci_requests=tuple(map(_pci_request, body["pci_requests"])),
    )


def _networks(network: Json | None) -> tuple[Network, ...]:
    if network is None:
        return ()
    return (*(Network(physnet=name) for name in network["physnets"]), Network(is_tunneled=network["tunneled"]))


def _pci_request(body: Json) -> PciRequest:
    source = "port" if body["alias_name"] is None else "flavor"
    more = {"source": source, "alternatives": body["spec"], "numa_policy": body["numa_policy"] or "legacy"}
    return msgspec.convert({"count": body["count"], "request_id": body["request_id"], **more}, PciRequest)


def _devices(request: Request, pair: Json) -> tuple[PciRequest, ...]:
    return PciAliases(Pci(alias=tuple(pair["options"]["pci"].get("alias", ())))).requests(request)


def _request_spec(pair: Json) -> RequestSpec:
    body = pair["request"]
    request = _request(body)
    wanted = RequestSpec.from_request(request, pci_requests=_devices(request, pair))
    wanted.instance_uuid = body["instance_uuid"]
    wanted.network_metadata = None if body["network"] is None else SimpleNamespace(**body["network"])
    group = body["group"]
    if group is not None:
        wanted.instance_group = InstanceGroup(
            uuid=group["uuid"],
            policy=group["policy"],
            members=group["members"],
            hosts=group["hosts"],
            rules=group["rules"],
        )
    return wanted


def _group(body: Json | None, hosts: list[Json]) -> Group | None:
    if body is None:
        return None
    limit = body["rules"].get("max_server_per_host", 1)
    group = Group(group_id=1, uuid=body["uuid"], policy=body["policy"], limit=limit)
    counts = {row: len(set(body["members"]) & set(host["instances"])) for row, host in enumerate(hosts)}
    group.members.update({row: count for row, count in counts.items() if count})
    return group
