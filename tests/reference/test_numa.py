"""The NUMA filter agrees with its slow twin."""

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.numa.cell import Overcommit, place_cell
from roost.model.devices.numa import NumaCell
from roost.model.host import HostFacts
from roost.scheduler.filters.numa_topology import NumaTopology as Filter
from roost.scheduler.framework.plugin import NoOptions
from roost.scheduler.framework.spec import Spec
from roost.scheduler.numa.constraints import networks_of, topology_of
from roost.scheduler.numa.host_kinds import reduce_cell
from tests.reference import numa
from tests.support.fleets.fleets import fleet, host_view
from tests.support.fleets.memory_nodes import cells, requests


@settings(max_examples=400)
@given(st.lists(st.none() | cells(), max_size=3), requests(), st.sampled_from([1.0, 2.0]))
def test_numa_filter_matches_slow_search_for_an_arrangement(topologies, request, ratio):
    state = fleet(*[HostFacts(numa=each, cpu_allocation_ratio=ratio) for each in topologies])
    spec, rule = Spec(request, now_s=0.0), Filter(NoOptions())
    wanted, needs = topology_of(request), networks_of(request)
    expected = [numa.numa_topology(state, row, wanted=wanted, needs=needs) for row in range(len(state.hosts))]
    found = rule.keep(host_view(state), spec) if rule.concerns(spec) else np.ones(len(topologies), dtype=np.bool_)
    assert found.tolist() == expected
    # The second call uses cached verdicts.
    assert rule.keep(host_view(state), spec).tolist() == expected
    refused = [row for row, passes in enumerate(expected) if not passes]
    assert all(
        not text or "required" in text or "reports no" in text
        for text in rule.host_reasons(host_view(state, refused), spec)
    )


@settings(max_examples=600)
@given(cells(), requests(), st.sampled_from([1.0, 2.0]))
def test_cell_and_its_reduced_kind_fit_the_same_instance_cells(host, request, ratio):
    wanted, overcommit = topology_of(request), Overcommit(cpu=ratio, memory=ratio)
    for cell in host.cells if wanted is not None else ():
        for at, instance_cell in enumerate(wanted.cells):
            fits = [
                place_cell(each, instance_cell, overcommit=overcommit, reserved=wanted.reserved_cpus(at)) is not None
                for each in (cell, reduce_cell(cell).cell())
            ]
            assert fits[0] == fits[1]


def test_cells_with_equivalent_pinned_cpus_reduce_to_the_same_kind():
    siblings = tuple((at, at + 8) for at in range(8))
    cpus = tuple(range(16))
    pinned = [(0, 8, 1), (3, 4, 12), (7, 15, 14)]  # a whole core and one thread of another core
    host = NumaCell(id=0, cpus=cpus, pcpus=cpus, siblings=siblings, memory_mb=1024)
    found = [reduce_cell(msgspec.structs.replace(host, id=at, pinned_cpus=each)) for at, each in enumerate(pinned)]
    assert found[0] == found[1] == found[2]
    assert reduce_cell(msgspec.structs.replace(host, pinned_cpus=(0, 1, 2))) != found[0]  # threads of three cores
