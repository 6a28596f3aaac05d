"""The weighers, their scales and their multipliers agree with their slow twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns.apply import apply_release
from roost.errors import ComputeHostMetricNotFound
from roost.model import writes
from roost.model.request import Destination
from roost.scheduler import registry
from roost.scheduler.shape.score_table import ScoreTable
from tests.reference import room, rules
from tests.reference.random_facts import facts
from tests.support.fleets.fleets import COLUMNS_OF_COUNTS, add_instance, fleet, group, host_view, spec

WEIGHERS = {weigher.name: weigher for weigher in registry.builtin_weighers()}
FROM_ZERO = ("cpu", "disk", "free_share", "io_ops", "ram")
TO_ONE = ("free_share",)
AMOUNTS = ("total_usable_ram_mb", "total_usable_disk_gb", "reserved_ram_mb", "reserved_disk_gb")
numbers = st.sampled_from([0.0, 1.0, 2.0, -1.5])
texts = st.sampled_from(["0", "1", "-2", "0.5", " 3 ", "x", "nan", "inf", ""])
keys = st.sampled_from([weigher.aggregate_key for weigher in WEIGHERS.values()])
images = st.dictionaries(st.sampled_from(["os_distro", "hw_architecture", "own"]), st.sampled_from("ab"))


@st.composite
def fleets(draw):
    """Draw hosts in aggregates, and the images of the instances on each host."""
    host_facts = draw(st.lists(facts, min_size=2, max_size=6))
    rows = range(len(host_facts))
    memberships = st.tuples(st.dictionaries(keys, texts, max_size=3), st.sets(st.sampled_from(rows)).map(sorted))
    aggregates = draw(st.lists(memberships, max_size=3))
    state = fleet(*host_facts, aggregates=aggregates)
    for row in rows:
        for name in (*COLUMNS_OF_COUNTS, *AMOUNTS):
            state.hosts.columns[name].data[row] = draw(st.integers(0, 12))
        state.hosts.update_derived(row)
    images_by_row = [draw(st.lists(images, max_size=3)) for _ in rows]
    for row in rows:
        for image in images_by_row[row]:
            add_instance(state, row, image)
    metadata = [[pairs for pairs, inside in aggregates if row in inside] for row in rows]
    return state, metadata, images_by_row


def raw_of(name, state, row, wanted, *, options, metadata, images):
    """Return the expected raw weight of a host, or None if the weigher must fail."""
    column = {key: column.view[row] for key, column in state.hosts.columns.items()}
    own_facts = state.hosts.facts[row]
    members = 0 if wanted.group is None else wanted.group.members.get(row, 0)
    match name:
        case "build_failure":
            return own_facts.failed_builds
        case "cpu":
            return max(rules.free_vcpus(state, row), 0)
        case "cross_cell":
            return 0 if wanted.destination is None else 1 if own_facts.cell == wanted.destination.cell else -1
        case "disk" | "ram":
            return max(rules.free_disk_mb(state, row) if name == "disk" else rules.free_ram_mb(state, row), 0)
        case "free_share":
            return rules.free_share(state, row)
        case "gpu_value":
            return 0  # no host here has a GPU: see ``test_packing``
        case "hypervisor_version":
            return own_facts.hypervisor_version
        case "image_properties":
            properties = {} if wanted.image is None else wanted.image.properties
            weights = dict(pair.split("=") for pair in options.image_props_weight_setting)
            if not options.image_props_weight_multiplier:
                return 0
            return rules.image_similarity(images, properties, {key: float(text) for key, text in weights.items()})
        case "io_ops":
            return own_facts.num_io_ops
        case "metrics":
            ratios = [(key, float(text)) for key, text in (pair.split("=") for pair in options.weight_setting)]
            multiplier = rules.multiplier(metadata, "metrics_weight_multiplier", options.weight_multiplier)
            unavailable = options.weight_of_unavailable
            return rules.metrics(
                state, row, ratios=ratios, multiplier=multiplier, required=options.required, unavailable=unavailable
            )
        case "num_instances":
            return column["num_instances"]
        case "pci":
            return rules.few_devices(state, row)
        case "room":
            return room.weigh(_amounts(state), row, (wanted.flavor.vcpus, wanted.flavor.memory_mb), {})
        case "soft_affinity":
            return members if wanted.policy == "soft-affinity" else 0
        case "soft_anti_affinity":
            return -members if wanted.policy == "soft-anti-affinity" else 0


def _amounts(state):
    """Return the capacities of all hosts, and their free amounts: processors and memory each."""
    hosts = []
    for row in range(len(state.hosts)):
        column = {key: column.view[row] for key, column in state.hosts.columns.items()}
        cpus = max(column["vcpus_total"] * column["cpu_allocation_ratio"], 0.0)
        memory = max(column["total_usable_ram_mb"] - column["reserved_ram_mb"], 0.0)
        hosts.append((cpus, memory, cpus - column["vcpus_used"], memory - column["used_ram_mb"]))
    return hosts


@st.composite
def options_of(draw, weigher):
    """Draw options of a weigher."""
    names = weigher.options.__struct_fields__
    chosen = {}
    for name in names:
        if name.endswith("multiplier"):
            chosen[name] = draw(
                numbers
                if weigher.name not in ("gpu_value", "pci", "room", "soft_affinity", "soft_anti_affinity")
                else numbers.map(abs)
            )
        elif name == "weight_setting":
            chosen[name] = draw(st.sampled_from([(), ("load=1",), ("load=2", "heat=-0.5"), ("noise=0", "load=1")]))
        elif name == "image_props_weight_setting":
            chosen[name] = draw(st.sampled_from([(), ("own=2",), ("os_distro=0.5", "own=-1"), ("other=1",)]))
        elif name == "required":
            chosen[name] = draw(st.booleans())
    return weigher.options(**chosen)


@given(fleets(), st.data())
def test_scores_match_slow_sum_of_weighers(world, data):
    state, metadata, images_by_row = world
    rows = data.draw(st.sets(st.sampled_from(range(len(images_by_row))), min_size=2).map(sorted))
    members = group(data.draw(st.sampled_from(["soft-affinity", "soft-anti-affinity"])), {0: 1, 1: 2})
    wanted = spec(
        image=data.draw(st.none() | images),
        group=data.draw(st.sampled_from([None, members])),
        destination=data.draw(st.sampled_from([None, Destination(cell="a", allow_cross_cell_move=True)])),
    )
    options = {name: data.draw(options_of(weigher)) for name, weigher in WEIGHERS.items()}
    weighers = [weigher(options[name]) for name, weigher in WEIGHERS.items()]
    totals = dict.fromkeys(rows, 0.0)
    missing = []
    for weigher in weighers:
        raws = {
            row: raw_of(
                weigher.name,
                state,
                row,
                wanted,
                options=options[weigher.name],
                metadata=metadata[row],
                images=images_by_row[row],
            )
            for row in rows
        }
        missing += [row for row, raw in raws.items() if raw is None]
        if not missing:
            low = 0 if weigher.name in FROM_ZERO else None
            high = 1 if weigher.name in TO_ONE else None
            scaled_weights = rules.normalise(list(raws.values()), minval=low, maxval=high)
            for row, scaled in zip(rows, scaled_weights, strict=True):
                option = weigher.multiplier * weigher.sign
                multiplier = rules.multiplier(metadata[row], weigher.aggregate_key, option)
                totals[row] += scaled * multiplier * weigher.sign
    table = ScoreTable(state, wanted, [weigher for weigher in weighers if weigher.concerns(wanted)])
    if missing:
        with pytest.raises(ComputeHostMetricNotFound, match=rf" host-{missing[0] + 1}\.node-{missing[0] + 1}\."):
            table.weigh(np.array(rows, dtype=np.intp), wanted)
        return
    found = table.weigh(np.array(rows, dtype=np.intp), wanted)
    np.testing.assert_allclose(found.totals, list(totals.values()), rtol=1e-9, atol=1e-9)


@given(fleets(), st.lists(st.tuples(st.booleans(), st.integers(0, 5), images), max_size=12))
def test_image_counts_follow_arrivals_and_departures(world, events):
    """Counts that exist before arrivals and departures equal counts that are computed afterwards."""
    state, _, images_by_row = world
    hosts = host_view(state)
    pairs = [(name, text) for name in ("os_distro", "hw_architecture", "own") for text in "ab"]
    for pair in pairs[::2]:
        hosts.image_counts(*pair)
    living = []
    for is_arrival, at, image in events:
        row = at % len(images_by_row)
        if is_arrival or not living:
            living.append((add_instance(state, row, image), row, image))
            images_by_row[row].append(image)
        else:
            consumer_id, host_row, old_image = living.pop(at % len(living))
            apply_release(state, writes.Release([consumer_id], []))
            images_by_row[host_row].remove(old_image)
    for name, text in pairs:
        counts = [sum(image.get(name) == text for image in here) for here in images_by_row]
        assert hosts.image_counts(name, text).tolist() == counts
        assert host_view(state.fork()).image_counts(name, text).tolist() == counts
