"""The weighers, their scales and multipliers, and the slow twins of all of these say the same."""

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
from tests.reference import rules
from tests.reference.drawn_facts import facts
from tests.support.fleets.fleets import COLUMNS_OF_COUNTS, boot, fleet, group, hosts_of, spec

WEIGHERS = {weigher.name: weigher for weigher in registry.builtin_weighers()}
FROM_ZERO = ("cpu", "disk", "io_ops", "ram")
numbers = st.sampled_from([0.0, 1.0, 2.0, -1.5])
texts = st.sampled_from(["0", "1", "-2", "0.5", " 3 ", "x", "nan", "inf", ""])
keys = st.sampled_from([weigher.aggregate_key for weigher in WEIGHERS.values()])
images = st.dictionaries(st.sampled_from(["os_distro", "hw_architecture", "own"]), st.sampled_from("ab"))


@st.composite
def fleets(draw):
    """Return a few hosts in a few aggregates, and the images of the instances on each."""
    told = draw(st.lists(facts, min_size=2, max_size=6))
    rows = range(len(told))
    joined = st.tuples(st.dictionaries(keys, texts, max_size=3), st.sets(st.sampled_from(rows)).map(sorted))
    aggregates = draw(st.lists(joined, max_size=3))
    state = fleet(*told, aggregates=aggregates)
    for row in rows:
        for name in COLUMNS_OF_COUNTS:
            state.hosts.columns[name].data[row] = draw(st.integers(0, 12))
        state.hosts.update_derived(row)
    booted = [draw(st.lists(images, max_size=3)) for _ in rows]
    for row in rows:
        for image in booted[row]:
            boot(state, row, image)
    metadata = [[pairs for pairs, inside in aggregates if row in inside] for row in rows]
    return state, metadata, booted


def raw_of(name, state, row, wanted, *, options, metadata, images):
    """Return what a weigher is to say of a host; None if it cannot be said."""
    column = {key: column.view[row] for key, column in state.hosts.columns.items()}
    told = state.hosts.facts[row]
    members = 0 if wanted.group is None else wanted.group.members.get(row, 0)
    match name:
        case "build_failure":
            return told.failed_builds
        case "cpu":
            return max(rules.free_vcpus(state, row), 0)
        case "cross_cell":
            return 0 if wanted.destination is None else 1 if told.cell == wanted.destination.cell else -1
        case "disk" | "ram":
            return max(column["free_disk_mb" if name == "disk" else "free_ram_mb"], 0)
        case "hypervisor_version":
            return told.hypervisor_version
        case "image_properties":
            asked = {} if wanted.image is None else wanted.image.properties
            weights = dict(pair.split("=") for pair in options.image_props_weight_setting)
            if not options.image_props_weight_multiplier:
                return 0
            return rules.alike(images, asked, {key: float(text) for key, text in weights.items()})
        case "io_ops":
            return told.num_io_ops
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
        case "soft_affinity":
            return members if wanted.policy == "soft-affinity" else 0
        case "soft_anti_affinity":
            return -members if wanted.policy == "soft-anti-affinity" else 0


@st.composite
def options_of(draw, weigher):
    """Return options of a weigher, drawn."""
    names = weigher.options.__struct_fields__
    said = {}
    for name in names:
        if name.endswith("multiplier"):
            said[name] = draw(
                numbers if weigher.name not in ("pci", "soft_affinity", "soft_anti_affinity") else numbers.map(abs)
            )
        elif name == "weight_setting":
            said[name] = draw(st.sampled_from([(), ("load=1",), ("load=2", "heat=-0.5"), ("noise=0", "load=1")]))
        elif name == "image_props_weight_setting":
            said[name] = draw(st.sampled_from([(), ("own=2",), ("os_distro=0.5", "own=-1"), ("other=1",)]))
        elif name == "required":
            said[name] = draw(st.booleans())
    return weigher.options(**said)


@given(fleets(), st.data())
def test_what_weighers_say_becomes_one_sum(world, data):
    state, metadata, booted = world
    rows = data.draw(st.sets(st.sampled_from(range(len(booted))), min_size=2).map(sorted))
    members = group(data.draw(st.sampled_from(["soft-affinity", "soft-anti-affinity"])), {0: 1, 1: 2})
    wanted = spec(
        image=data.draw(st.none() | images),
        group=data.draw(st.sampled_from([None, members])),
        destination=data.draw(st.sampled_from([None, Destination(cell="a", allow_cross_cell_move=True)])),
    )
    options = {name: data.draw(options_of(weigher)) for name, weigher in WEIGHERS.items()}
    made = [weigher(options[name]) for name, weigher in WEIGHERS.items()]
    totals = dict.fromkeys(rows, 0.0)
    missing = []
    for weigher in made:
        raws = {
            row: raw_of(
                weigher.name,
                state,
                row,
                wanted,
                options=options[weigher.name],
                metadata=metadata[row],
                images=booted[row],
            )
            for row in rows
        }
        missing += [row for row, raw in raws.items() if raw is None]
        if not missing:
            low = 0 if weigher.name in FROM_ZERO else None
            for row, scaled in zip(rows, rules.normalise(list(raws.values()), minval=low), strict=True):
                option = weigher.multiplier * weigher.sign
                multiplier = rules.multiplier(metadata[row], weigher.aggregate_key, option)
                totals[row] += scaled * multiplier * weigher.sign
    weighing = ScoreTable(state, wanted, [weigher for weigher in made if weigher.concerns(wanted)])
    if missing:
        with pytest.raises(ComputeHostMetricNotFound, match=rf" host-{missing[0] + 1}\.node-{missing[0] + 1}\."):
            weighing.weigh(np.array(rows, dtype=np.intp), wanted)
        return
    found = weighing.weigh(np.array(rows, dtype=np.intp), wanted)
    np.testing.assert_allclose(found.totals, list(totals.values()), rtol=1e-9, atol=1e-9)


@given(fleets(), st.lists(st.tuples(st.booleans(), st.integers(0, 5), images), max_size=12))
def test_counts_of_images_follow_instances(world, events):
    """Counts that were made before instances come and go are those made afterwards."""
    state, _, booted = world
    hosts = hosts_of(state)
    pairs = [(name, text) for name in ("os_distro", "hw_architecture", "own") for text in "ab"]
    for pair in pairs[::2]:
        hosts.image_counts(*pair)
    living = []
    for comes, at, image in events:
        row = at % len(booted)
        if comes or not living:
            living.append((boot(state, row, image), row, image))
            booted[row].append(image)
        else:
            consumer_id, where, gone = living.pop(at % len(living))
            apply_release(state, writes.Release([consumer_id], []))
            booted[where].remove(gone)
    for name, text in pairs:
        counts = [sum(image.get(name) == text for image in here) for here in booted]
        assert hosts.image_counts(name, text).tolist() == counts
        assert hosts_of(state.fork()).image_counts(name, text).tolist() == counts
