"""Run the reference's filters and weighers; by the Python that has it: ``serving_nova.py``.

Each line on the standard input is a question: a pair of fleet and request, all keys given, and the names of the rules
to run. Each answer is one line on the standard output. Hosts are plain objects with the attributes of a host state.
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

import nova.conf  # noqa: E402  (what it says while it is imported is about its own libraries)
from nova import context, objects, weights  # noqa: E402
from nova.pci import request as pci_request  # noqa: E402
from nova.pci import stats as pci_stats  # noqa: E402
from nova.scheduler import filters as nova_filters  # noqa: E402
from nova.scheduler import host_manager  # noqa: E402
from nova.scheduler import weights as nova_weights  # noqa: E402
from nova.virt import hardware  # noqa: E402
from oslo_utils import timeutils  # noqa: E402

CONF = nova.conf.CONF
NOW = dt.datetime(2030, 1, 1, 12, 0, 0)  # noqa: DTZ001  (the reference knows no zones)
Json = dict[str, Any]
INSTANCES_MAX = 3
DEVICE_KEYS = ("vendor_id", "product_id", "numa_node", "dev_type", "rp_uuid", "physical_network")


class Processor(str):  # noqa: SLOT000
    """What a processor says of itself: text, as nodes report it, and a table, as which one filter reads it."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry of the table."""
        return json.loads(self).get(name, default)


def host_state(told: Json, aggregates: Json) -> SimpleNamespace:
    """Build a host with the attributes that filters and weighers read."""
    topology = numa_topology(told["numa_cells"])
    pools = [
        objects.PciDevicePool(
            **{name: pool[name] for name in ("product_id", "vendor_id", "numa_node", "count")}, tags=pool["tags"]
        )
        for pool in told["pci_pools"]
    ]
    plain = {name: told[name] for name in told["attributes"]}
    return SimpleNamespace(
        **plain,
        cpu_info=Processor(json.dumps(told["cpu_info"])) if told["cpu_info"] else None,
        stats=dict(told["stats"]),
        metrics=objects.MonitorMetricList(
            objects=[
                objects.MonitorMetric(name=name, value=value, timestamp=NOW, source="test")
                for name, value in told["metrics"].items()
            ]
        ),
        service={
            "host": told["host"],
            "binary": "nova-compute",
            "topic": "compute",
            "disabled": told["is_disabled"],
            "disabled_reason": None,
            "forced_down": told["is_forced_down"],
            "created_at": NOW,
            "updated_at": None,
            "last_seen_up": NOW - dt.timedelta(seconds=told["age_s"]),
        },
        aggregates=[
            objects.Aggregate(name=name, metadata=aggregates[name], hosts=[])
            for name in told["aggregates"]
            if name in aggregates
        ],
        instances={
            uuid: objects.Instance(
                uuid=uuid, image_ref="", system_metadata={f"image_{name}": text for name, text in properties.items()}
            )
            for uuid, properties in itertools.zip_longest(told["instances"], told["images"], fillvalue={})
        },
        numa_topology=topology,
        pci_stats=pci_stats.PciDeviceStats(topology, objects.PciDevicePoolList(objects=pools)) if pools else None,
        allocation_candidates=[{"mappings": mappings} for mappings in told["candidates"] or [{}]],
        limits={},
        updated=None,
    )


def numa_topology(cells: list[Json]) -> Any:
    """Build the topology of a host; None where it has none."""
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


def pci_requests(told: Json, flavor: Any, meta: Any) -> Any:
    """Build the requests for devices: those of the flavor, and those that come with the request."""
    found = pci_request.get_pci_requests_from_flavor(
        flavor, affinity_policy=hardware.get_pci_numa_policy_constraint(flavor, meta)
    )
    found.requests.extend(objects.InstancePCIRequest(**each) for each in told["pci_requests"])
    return found


def request_spec(told: Json) -> Any:
    """Build the request.

    Raises:
        Exception: of any kind, where the reference does not take such a flavor or image.
    """
    flavor = objects.Flavor(flavorid="1", **told["flavor"])
    image = told["image"]
    meta = objects.ImageMeta.from_dict(image if image is not None else {"properties": {}})
    group, going, network = told["group"], told["destination"], told["network"]
    more = {}
    if network is not None:
        physnets = set(network["physnets"])
        more["network_metadata"] = objects.NetworkMetadata(physnets=physnets, tunneled=network["tunneled"])
    return objects.RequestSpec(
        context.get_admin_context(),
        flavor=flavor,
        # What boots from a volume has an image without an id.
        image=meta,
        num_instances=1,
        instance_uuid=told["instance_uuid"],
        project_id=told["project_id"],
        scheduler_hints={name: each if isinstance(each, list) else [each] for name, each in told["hints"].items()},
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
        if going is None
        else objects.Destination(
            cell=objects.CellMapping(uuid=going["cell"]), allow_cross_cell_move=going["allow_cross_cell_move"]
        ),
        numa_topology=hardware.numa_get_constraints(flavor, meta),
        pci_requests=pci_requests(told, flavor, meta),
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


def filtered(kind: type, hosts: list[Any], spec: Any) -> list[bool | str]:
    """Say of each host whether it passes a filter, or by which error the filter fails at it."""
    handler = nova_filters.HostFilterHandler()

    def passing(some: list[Any]) -> set[int]:
        # Filters narrow them, and the next filter is to be asked about the same hosts.
        before = [list(host.allocation_candidates) for host in some]
        try:
            return {id(host) for host in handler.get_filtered_objects([kind()], some, spec) or []}
        finally:
            for host, candidates in zip(some, before, strict=True):
                host.allocation_candidates = candidates

    try:
        left = passing(hosts)
        return [id(host) in left for host in hosts]
    except Exception:  # noqa: BLE001  (then each host is asked about by itself)
        return [alone(passing, host) for host in hosts]


def alone(passing: Any, host: Any) -> bool | str:
    """Return whether one host passes, or the error."""
    try:
        return bool(passing([host]))
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


def weighed(kinds: list[type], hosts: list[Any], spec: Any) -> tuple[list[float], list[int]]:
    """Return the sums of some weighers, in the order of hosts, and the hosts' numbers, best first."""
    numbers = {id(host): at for at, host in enumerate(hosts)}
    found = nova_weights.HostWeightHandler().get_weighed_objects([kind() for kind in kinds], list(hosts), spec)
    order = [numbers[id(each.obj)] for each in found]
    totals = dict(zip(order, (each.weight for each in found), strict=True))
    return [totals[at] for at in range(len(hosts))], order


def told_weights(kind: type, hosts: list[Any], spec: Any) -> Json:
    """Return what a weigher gives each host, or the error by which it fails."""
    weigher = kind()
    try:
        raw = list(weigher.weigh_objects([nova_weights.WeighedHost(host, 0.0) for host in hosts], spec))
        normalised = list(weights.normalize(raw, weigher.minval, weigher.maxval))
        return {"raw": raw, "normalised": normalised, "totals": weighed([kind], hosts, spec)[0]}
    except Exception as error:  # noqa: BLE001
        return {"error": type(error).__name__}


def chosen(question: Json, kinds: Json, weighers: list[type], hosts: list[Any], spec: Any) -> Json:
    """Return who passes some filters in a row, with their sums and ranks."""
    numbers = {id(host): at for at, host in enumerate(hosts)}
    enabled = [kinds[name]() for name in question["enabled"]]
    try:
        left = nova_filters.HostFilterHandler().get_filtered_objects(enabled, list(hosts), spec) or []
        totals, order = weighed(weighers, left, spec)
    except Exception as error:  # noqa: BLE001
        return {"error": type(error).__name__}
    survivors = [numbers[id(host)] for host in left]
    return {"survivors": survivors, "totals": totals, "ranking": [survivors[at] for at in order]}


def consumed(told: Json, aggregates: Json, asked: Json, kinds: list[type]) -> list[Json | str]:
    """Let instances of one request consume a host while it passes some filters, three at most.

    Returns:
        What is in use of the host after each, or the error.
    """
    # The request is made anew: a host state writes into it on which memory nodes it goes.
    spec = request_spec(asked)
    state = host_manager.HostState(told["host"], told["nodename"], told["cell_uuid"])
    vars(state).update(vars(host_state(told, aggregates)))
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
    """Tell what instances have taken of a host."""
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
    """Let the options of a pair be in force."""
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


def timed(question: Json, kinds: Json, weighers: list[type], hosts: list[Any], spec: Any) -> float:
    """Return how long it takes to filter and weigh hosts that are there already: milliseconds."""
    begun = time.perf_counter()
    chosen(question, kinds, weighers, hosts, spec)
    return (time.perf_counter() - begun) * 1000


def answer(question: Json, filters: Json, weighers: Json) -> Json:
    """Answer one question."""
    pair = question["pair"]
    try:
        spec = request_spec(pair["request"])
        hosts = [host_state(host, pair["aggregates"]) for host in pair["hosts"]]
    except Exception as error:  # noqa: BLE001
        return {"refused": f"{type(error).__name__}: {error}"}
    kinds = [weighers[name] for name in question["weighers"]]
    if "repeats" in question:
        return {"times_ms": [timed(question, filters, kinds, hosts, spec) for _ in range(question["repeats"])]}
    found = {
        "filters": {name: filtered(filters[name], hosts, spec) for name in question["filters"]},
        "weighers": {name: told_weights(weighers[name], hosts, spec) for name in question["weighers"]},
        "chosen": chosen(question, filters, kinds, hosts, spec),
        "consumed": [
            consumed(host, pair["aggregates"], pair["request"], [filters[name] for name in question["exact"]])
            for host in pair["hosts"]
        ],
    }
    return json.loads(json.dumps(found))


def main() -> None:
    """Answer questions until there are no more."""
    CONF([], project="nova", default_config_files=[])
    objects.register_all()
    # Instances are whole as they are: nothing is read from a database.
    objects.CellMapping.get_by_uuid = lambda _context, _uuid: None
    objects.InstanceList.fill_metadata = lambda _self: None
    context.target_cell = lambda told, _cell: contextlib.nullcontext(told)
    timeutils.set_time_override(NOW)
    filters = {each.__name__: each for each in nova_filters.all_filters()}
    weighers = {each.__name__: each for each in nova_weights.all_weighers()}
    # How often each is asked, and within which bounds it weighs.
    has = {
        "filters": {name: [kind.run_filter_once_per_request, kind.RUN_ON_REBUILD] for name, kind in filters.items()},
        "weighers": {name: [kind.minval, kind.maxval] for name, kind in weighers.items()},
    }
    print(json.dumps(has), flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        with options_of(question["pair"]):
            print(json.dumps(answer(question, filters, weighers)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
