"""Run the reference's filters and weighers, with the Python of its environment: ``serve_nova.py``.

Each line on the standard input is a whole pair of a fleet and a request, and the names of the rules to run. Each
answer is one line on the standard output. Hosts are plain objects with the attributes of a host state.
"""

import contextlib
import datetime as dt
import itertools
import json
import logging
import sys
import time
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

import nova.conf  # noqa: E402  (its warnings during import are about its own libraries)
from nova import context, objects, weights  # noqa: E402
from nova.pci import request as pci_request  # noqa: E402
from nova.pci import stats as pci_stats  # noqa: E402
from nova.scheduler import filters as nova_filters  # noqa: E402
from nova.scheduler import host_manager  # noqa: E402
from nova.scheduler import weights as nova_weights  # noqa: E402
from nova.virt import hardware  # noqa: E402
from oslo_utils import timeutils  # noqa: E402

CONF = nova.conf.CONF
NOW = dt.datetime(2030, 1, 1, 12, 0, 0)  # noqa: DTZ001  (the reference uses naive times)
Json = dict[str, Any]
INSTANCES_MAX = 3
DEVICE_KEYS = ("vendor_id", "product_id", "numa_node", "dev_type", "rp_uuid", "physical_network")


class Processor(str):  # noqa: SLOT000
    """Processor information as text, like nodes report it, that one filter reads as a table."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry of the table."""
        return json.loads(self).get(name, default)


def host_state(host: Json, aggregates: Json) -> SimpleNamespace:
    """Build a host with the attributes that filters and weighers read."""
    topology = numa_topology(host["numa_cells"])
    pools = [
        objects.PciDevicePool(
            **{name: pool[name] for name in ("product_id", "vendor_id", "numa_node", "count")}, tags=pool["tags"]
        )
        for pool in host["pci_pools"]
    ]
    plain = {name: host[name] for name in host["attributes"]}
    return SimpleNamespace(
        **plain,
        cpu_info=Processor(json.dumps(host["cpu_info"])) if host["cpu_info"] else None,
        stats=dict(host["stats"]),
        metrics=objects.MonitorMetricList(
            objects=[
                objects.MonitorMetric(name=name, value=value, timestamp=NOW, source="test")
                for name, value in host["metrics"].items()
            ]
        ),
        service={
            "host": host["host"],
            "binary": "nova-compute",
            "topic": "compute",
            "disabled": host["is_disabled"],
            "disabled_reason": None,
            "forced_down": host["is_forced_down"],
            "created_at": NOW,
            "updated_at": None,
            "last_seen_up": NOW - dt.timedelta(seconds=host["age_s"]),
        },
        aggregates=[
            objects.Aggregate(name=name, metadata=aggregates[name], hosts=[])
            for name in host["aggregates"]
            if name in aggregates
        ],
        instances={
            uuid: objects.Instance(
                uuid=uuid, image_ref="", system_metadata={f"image_{name}": text for name, text in properties.items()}
            )
            for uuid, properties in itertools.zip_longest(host["instances"], host["images"], fillvalue={})
        },
        numa_topology=topology,
        pci_stats=pci_stats.PciDeviceStats(topology, objects.PciDevicePoolList(objects=pools)) if pools else None,
        allocation_candidates=[{"mappings": mappings} for mappings in host["candidates"] or [{}]],
        limits={},
        updated=None,
    )


def numa_topology(cells: list[Json]) -> Any:
    """Build the NUMA topology of a host, or None."""
    if not cells:
        return None
    return objects.NUMATopology(
        cells=[
            objects.NUMACell(
                id=cell["id"],
                socket=cell["socket"],
                cpuset=set(cell["cpuset"]),
                pcpuset=set(cell["pcpuset"]),
                memory=cell["memory"],
                cpu_usage=cell["cpu_usage"],
                memory_usage=cell["memory_usage"],
                pinned_cpus=set(cell["pinned_cpus"]),
                siblings=[set(each) for each in cell["siblings"]],
                mempages=[objects.NUMAPagesTopology(**pages) for pages in cell["mempages"]],
                network_metadata=objects.NetworkMetadata(physnets=set(cell["physnets"]), tunneled=cell["tunneled"]),
            )
            for cell in cells
        ]
    )


def pci_requests(body: Json, flavor: Any, meta: Any) -> Any:
    """Build the device requests of the flavor and of the request itself."""
    found = pci_request.get_pci_requests_from_flavor(
        flavor, affinity_policy=hardware.get_pci_numa_policy_constraint(flavor, meta)
    )
    found.requests.extend(objects.InstancePCIRequest(**each) for each in body["pci_requests"])
    return found


def request_spec(body: Json) -> Any:
    """Build the request spec.

    Raises:
        Exception: any exception of the reference that refuses the flavor or image.
    """
    flavor = objects.Flavor(flavorid="1", **body["flavor"])
    image = body["image"]
    meta = objects.ImageMeta.from_dict(image if image is not None else {"properties": {}})
    group, destination, network = body["group"], body["destination"], body["network"]
    more = {}
    if network is not None:
        physnets = set(network["physnets"])
        more["network_metadata"] = objects.NetworkMetadata(physnets=physnets, tunneled=network["tunneled"])
    return objects.RequestSpec(
        context.get_admin_context(),
        flavor=flavor,
        # An instance that boots from a volume has an image without an id.
        image=meta,
        num_instances=1,
        instance_uuid=body["instance_uuid"],
        project_id=body["project_id"],
        scheduler_hints={name: each if isinstance(each, list) else [each] for name, each in body["hints"].items()},
        instance_group=None
        if group is None
        else objects.InstanceGroup(
            uuid=group["uuid"],
            policy=group["policy"],
            policies=[group["policy"]],
            rules=group["rules"],
            members=group["members"],
            hosts=group["hosts"],
        ),
        requested_destination=None
        if destination is None
        else objects.Destination(
            cell=objects.CellMapping(uuid=destination["cell"]),
            allow_cross_cell_move=destination["allow_cross_cell_move"],
        ),
        numa_topology=hardware.numa_get_constraints(flavor, meta),
        pci_requests=pci_requests(body, flavor, meta),
        ignore_hosts=None,
        force_hosts=None,
        force_nodes=None,
        retry=None,
        limits=objects.SchedulerLimits(),
        availability_zone=None,
        requested_resources=[],
        is_bfv=image is None,
        **more,
    )


def run_filter(kind: type, hosts: list[Any], spec: Any) -> list[bool | str]:
    """Return for each host whether it passes a filter, or the name of the filter's error."""
    handler = nova_filters.HostFilterHandler()

    def passing(some: list[Any]) -> set[int]:
        # Filters narrow the candidates; restore them for the next filter.
        before = [list(host.allocation_candidates) for host in some]
        try:
            return {id(host) for host in handler.get_filtered_objects([kind()], some, spec) or []}
        finally:
            for host, candidates in zip(some, before, strict=True):
                host.allocation_candidates = candidates

    try:
        left = passing(hosts)
        return [id(host) in left for host in hosts]
    except Exception:  # noqa: BLE001  (then each host is checked separately)
        return [check_single(passing, host) for host in hosts]


def check_single(passing: Any, host: Any) -> bool | str:
    """Return whether one host passes, or the name of the error."""
    try:
        return bool(passing([host]))
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


def run_weighers(kinds: list[type], hosts: list[Any], spec: Any) -> tuple[list[float], list[int]]:
    """Return the sums of some weighers in the order of hosts, and the numbers of the ranked hosts."""
    numbers = {id(host): at for at, host in enumerate(hosts)}
    found = nova_weights.HostWeightHandler().get_weighed_objects([kind() for kind in kinds], list(hosts), spec)
    order = [numbers[id(each.obj)] for each in found]
    totals = dict(zip(order, (each.weight for each in found), strict=True))
    return [totals[at] for at in range(len(hosts))], order


def weights_of(kind: type, hosts: list[Any], spec: Any) -> Json:
    """Return a weigher's weights of all hosts, or the name of its error."""
    weigher = kind()
    try:
        raw = list(weigher.weigh_objects([nova_weights.WeighedHost(host, 0.0) for host in hosts], spec))
        normalised = list(weights.normalize(raw, weigher.minval, weigher.maxval))
        return {"raw": raw, "normalised": normalised, "totals": run_weighers([kind], hosts, spec)[0]}
    except Exception as error:  # noqa: BLE001
        return {"error": type(error).__name__}


def choose(question: Json, kinds: Json, weighers: list[type], hosts: list[Any], spec: Any) -> Json:
    """Return the hosts that pass all enabled filters, with their sums and ranks."""
    numbers = {id(host): at for at, host in enumerate(hosts)}
    enabled = [kinds[name]() for name in question["enabled"]]
    try:
        left = nova_filters.HostFilterHandler().get_filtered_objects(enabled, list(hosts), spec) or []
        totals, order = run_weighers(weighers, left, spec)
    except Exception as error:  # noqa: BLE001
        return {"error": type(error).__name__}
    survivors = [numbers[id(host)] for host in left]
    return {"survivors": survivors, "totals": totals, "ranking": [survivors[at] for at in order]}


def consume(host: Json, aggregates: Json, request: Json, kinds: list[type]) -> list[Json | str]:
    """Consume a host for at most three instances of a request, while it passes some filters.

    Returns:
        The used resources of the host after each instance, or the name of an error.
    """
    # Build a new request spec, because a host state writes the NUMA placement into it.
    spec = request_spec(request)
    state = host_manager.HostState(host["host"], host["nodename"], host["cell_uuid"])
    vars(state).update(vars(host_state(host, aggregates)))
    handler, found = nova_filters.HostFilterHandler(), []
    while len(found) < INSTANCES_MAX:
        candidates = list(state.allocation_candidates)
        try:
            if not handler.get_filtered_objects([kind() for kind in kinds], [state], spec):
                break
            spec.requested_resources = [
                objects.RequestGroup(requester_id=suffix, provider_uuids=uuids)
                for suffix, uuids in state.allocation_candidates[0].get("mappings", {}).items()
            ]
            state.allocation_candidates = candidates
            state.consume_from_request(spec)
        except Exception as error:  # noqa: BLE001
            return [*found, type(error).__name__]
        found.append(in_use(state))
    return found


def in_use(state: Any) -> Json:
    """Return the resources of a host that instances use."""
    cells = [] if state.numa_topology is None else state.numa_topology.cells
    pools = [] if state.pci_stats is None else state.pci_stats.pools
    return {
        "num_io_ops": state.num_io_ops,
        "num_instances": state.num_instances,
        "cells": [
            [
                cell.id,
                cell.cpu_usage,
                cell.memory_usage,
                sorted(cell.pinned_cpus),
                [pages.used for pages in cell.mempages],
            ]
            for cell in cells
        ],
        "devices": sorted(
            ([str(pool.get(name)) for name in DEVICE_KEYS], pool["count"]) for pool in pools if pool["count"]
        ),
    }


@contextlib.contextmanager
def options_of(pair: Json) -> Iterator[None]:
    """Set the options of a pair during the block."""
    named = [
        (name, value, None if section == "DEFAULT" else section)
        for section, table in pair["options"].items()
        for name, value in table.items()
    ]
    for name, value, section in named:
        CONF.set_override(name, value, section)
    try:
        yield
    finally:
        for name, _, section in named:
            CONF.clear_override(name, section)


def time_choice_ms(question: Json, kinds: Json, weighers: list[type], hosts: list[Any], spec: Any) -> float:
    """Return the milliseconds to filter and weigh existing host objects."""
    begun = time.perf_counter()
    choose(question, kinds, weighers, hosts, spec)
    return (time.perf_counter() - begun) * 1000


def answer(question: Json, filters: Json, weighers: Json) -> Json:
    """Run the rules of one input line."""
    pair = question["pair"]
    try:
        spec = request_spec(pair["request"])
        hosts = [host_state(host, pair["aggregates"]) for host in pair["hosts"]]
    except Exception as error:  # noqa: BLE001
        return {"refused": f"{type(error).__name__}: {error}"}
    kinds = [weighers[name] for name in question["weighers"]]
    if "repeats" in question:
        return {"times_ms": [time_choice_ms(question, filters, kinds, hosts, spec) for _ in range(question["repeats"])]}
    found = {
        "filters": {name: run_filter(filters[name], hosts, spec) for name in question["filters"]},
        "weighers": {name: weights_of(weighers[name], hosts, spec) for name in question["weighers"]},
        "chosen": choose(question, filters, kinds, hosts, spec),
        "consumed": [
            consume(host, pair["aggregates"], pair["request"], [filters[name] for name in question["exact"]])
            for host in pair["hosts"]
        ],
    }
    return json.loads(json.dumps(found))


def main() -> None:
    """Answer each line of the standard input."""
    CONF([], project="nova", default_config_files=[])
    objects.register_all()
    # Instances are complete, so that no database is read.
    objects.CellMapping.get_by_uuid = lambda _context, _uuid: None
    objects.InstanceList.fill_metadata = lambda _self: None
    context.target_cell = lambda current, _cell: contextlib.nullcontext(current)
    timeutils.set_time_override(NOW)
    filters = {each.__name__: each for each in nova_filters.all_filters()}
    weighers = {each.__name__: each for each in nova_weights.all_weighers()}
    # The run flags of each filter, and the weight bounds of each weigher.
    properties = {
        "filters": {name: [kind.run_filter_once_per_request, kind.RUN_ON_REBUILD] for name, kind in filters.items()},
        "weighers": {name: [kind.minval, kind.maxval] for name, kind in weighers.items()},
    }
    print(json.dumps(properties), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        with options_of(question["pair"]):
            print(json.dumps(answer(question, filters, weighers)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
