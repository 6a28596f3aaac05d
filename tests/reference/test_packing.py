"""Prices, values and losses of free devices agree with their slow twins."""

from functools import partial

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.columns.types import NO_INVENTORY
from roost.engine.packing.cutting_stock import fill_values, solve_prices
from roost.engine.packing.device_value import DeviceClaim, DeviceHosts, device_costs, loss_by_claim, loss_of
from roost.engine.packing.free_devices import FreeAmounts, free_devices
from roost.engine.packing.single_hosts import SingleHosts
from roost.model.fleet import Departure
from roost.scheduler.query.device_demand import find_demand
from roost.scheduler.rule_support.demand_counts import DemandCounts, DeviceRequest, count_requests, demand_table
from roost.scheduler.weighers.gpu_value import GpuValue
from tests.reference import packing
from tests.support.fleets.fleets import host_view
from tests.support.fleets.gpu_fleets import GPU, gpu_host, gpu_request, gpu_settings
from tests.support.fleets.worlds import merge_fleets, roost_with

CAPACITY = 12
demands = st.dictionaries(st.integers(2, CAPACITY), st.integers(1, 50), min_size=1, max_size=3)


@settings(max_examples=60)
@given(demands)
def test_prices_are_optimal(demand):
    prices = solve_prices(demand, CAPACITY)
    worth = sum(count * prices[size] for size, count in demand.items())
    assert worth == pytest.approx(packing.best_dual_value(demand, CAPACITY))
    assert packing.value_of(CAPACITY, prices) <= 1.0 + 1e-8


@settings(max_examples=60)
@given(st.dictionaries(st.integers(1, 40), st.integers(1, 1000), min_size=4, max_size=20))
def test_prices_of_many_sizes_are_feasible_and_serve_the_demand(demand):
    """The dual never exceeds the devices of a greedy cut, and no pattern is worth more than a device."""
    prices = solve_prices(demand, 40)
    worth = sum(count * prices[size] for size, count in demand.items())
    assert fill_values(prices, 40)[-1] <= 1.0 + 1e-8
    area = sum(size * count for size, count in demand.items()) / 40
    assert area - 1e-6 <= worth <= sum(count / (40 // size) for size, count in demand.items()) + 1e-6


@given(st.dictionaries(st.integers(1, CAPACITY), st.floats(0.0, 1.0), max_size=4), st.integers(0, CAPACITY))
def test_values_are_those_of_the_best_pattern(prices, cells):
    expected = packing.value_of(cells, prices) if prices else 0.0
    assert fill_values(prices, CAPACITY)[cells] == pytest.approx(expected)


requests = st.builds(
    DeviceRequest,
    st.integers(0, 40),
    st.integers(0, 4000),
    st.lists(st.sampled_from([100, 300, 333, 450, 500, 810, 1000]), min_size=1, max_size=3).map(tuple),
    st.integers(1, 3),
)
host_amounts = st.tuples(
    st.lists(st.sampled_from([0, 90, 190, 333, 500, 550, 700, 999, 1000]), min_size=3, max_size=3),
    st.integers(0, 64),
    st.integers(0, 9000),
)


@settings(max_examples=150)
@given(st.lists(requests, min_size=1, max_size=8), st.lists(host_amounts, min_size=1, max_size=5), st.data())
def test_loss_of_each_host_equals_its_twin(counted, hosts, data):
    table = demand_table(count_requests(DemandCounts(), counted, unit=1000))
    amounts = tuple(data.draw(st.lists(st.sampled_from([100, 450, 500, 810, 1000]), max_size=3)))
    claim = DeviceClaim(
        cpus=float(data.draw(st.integers(0, 20))),
        memory=float(data.draw(st.integers(0, 2000))),
        amounts=amounts,
        allowed=(None,) * len(amounts),
        is_isolated=data.draw(st.booleans()),
    )
    scarce = data.draw(st.booleans())
    devices, cpus, memory = (np.array(column) for column in zip(*hosts, strict=True))
    present = DeviceHosts(cpus=cpus.astype(float), memory=memory.astype(float), devices=devices)
    before = loss_of(present, table, scarce=scarce)
    rises = loss_by_claim(present, claim, table, scarce=scarce)
    single = SingleHosts(table)
    free = [FreeAmounts(float(own_cpus), float(own_memory), tuple(own)) for own, own_cpus, own_memory in hosts]
    for _ in range(2):  # The second time, kept losses are returned.
        assert single.losses(free, claim, scarce=scarce) == rises.tolist()
    for row, (own, own_cpus, own_memory) in enumerate(hosts):
        expected = packing.loss(own, own_cpus, own_memory, table, scarce=scarce)
        assert before[row] == pytest.approx(expected)
        after = packing.loss_after(own, own_cpus, own_memory, claim, table, scarce=scarce)
        rise = 0.0 if after is None else (after[0] - expected) / 1000
        assert rises[row] == pytest.approx(rise, abs=2e-9)
        if after is not None and len(claim.amounts) == 1:
            costs = device_costs(np.array(own), claim.amounts[0], table)
            assert int(np.argmin(costs)) == after[1][0]
            assert single.device_costs(tuple(own), claim.amounts[0]) == costs.tolist()


@given(st.lists(requests, max_size=12), st.integers(0, 12))
def test_counts_do_not_depend_on_the_refreshes(counted, cut):
    whole = count_requests(DemandCounts(), counted, unit=1000)
    parts = count_requests(count_requests(DemandCounts(), counted[:cut], unit=1000), counted[cut:], unit=1000)
    assert parts == whole


def test_prices_of_the_published_mix():
    """Sizes in hundredths of a GPU: prices jump where one piece less fits."""
    demand = {81: 56, 65: 1, 59: 40, 55: 60, 48: 30, 46: 60, 33: 40, 32: 80, 27: 10, 23: 60, 22: 1, 16: 20, 5: 10}
    prices = solve_prices(demand, 100)
    assert prices[81] == pytest.approx(1.0)
    assert [prices[48], prices[46]] == pytest.approx([0.5] * 2)
    assert [prices[33], prices[32]] == pytest.approx([1 / 3] * 2)
    assert prices[5] == pytest.approx(0.0)


@st.composite
def gpu_hosts(draw, name):
    capacities = draw(st.lists(st.sampled_from([400, 1000]), max_size=3))
    traits = draw(st.sampled_from([(), ("CUSTOM_FAST",)]))
    return gpu_host(name, *capacities, vcpus=draw(st.integers(1, 24)), memory_mb=512, traits=traits)


@settings(max_examples=40)
@given(st.data())
def test_raw_weights_of_hosts_equal_the_rise_of_their_loss(data):
    """After any requests, with kept weights, and before and after the weigher has learned something."""
    fleet = merge_fleets(*(data.draw(gpu_hosts(f"h{at}")) for at in range(4)))
    roost = roost_with(fleet, settings=gpu_settings())
    weigher, hosts = roost.rules.weighers[0], roost.state.hosts
    assert isinstance(weigher, GpuValue)
    amounts = st.sampled_from([0, 160, 400, 500, 1000])
    if data.draw(st.booleans()):
        roost.work([gpu_request(data.draw(amounts.filter(bool)), vcpus=data.draw(st.integers(0, 9)))] * 100)
    for _ in range(data.draw(st.integers(1, 6))):
        wanted = gpu_request(data.draw(amounts), gpus=data.draw(st.integers(1, 2)), vcpus=data.draw(st.integers(0, 6)))
        if wanted.groups and data.draw(st.booleans()):
            groups = [msgspec.structs.replace(each, required=(frozenset({"CUSTOM_FAST"}),)) for each in wanted.groups]
            wanted = msgspec.structs.replace(wanted, groups=tuple(groups))
        shape = roost.scheduler.compile_shape(wanted)
        view = host_view(roost.state)
        weights = view.follow((weigher, weigher.weight_key(view, shape.spec)), partial(weigher.raw, spec=shape.spec))
        for row in range(len(hosts)):
            assert weights[row] == pytest.approx(-_slow_rise(roost, weigher, wanted, row), abs=2e-9)
        roost.decide(wanted)


@settings(max_examples=40)
@given(st.data())
def test_free_amounts_of_hosts_and_their_sums_follow_all_changes(data):
    """Claims and releases change single hosts; a new host, perhaps with more GPUs, changes all columns."""
    roost = roost_with(merge_fleets(*(data.draw(gpu_hosts(f"h{at}")) for at in range(3))), settings=gpu_settings())
    placed = []
    for step in range(data.draw(st.integers(1, 8))):
        act = data.draw(st.sampled_from(["decide", "release", "install"]))
        if act == "install":
            roost.install(data.draw(gpu_hosts(f"new{step}")))
        elif act == "release" and placed:
            roost.work([Departure(instance_uuids=(placed.pop(),))])
        else:
            decision = roost.decide(gpu_request(data.draw(st.sampled_from([0, 160, 1000])), vcpus=2))
            placed += [pick.instance_uuid for pick in decision.picks]
        _compare_free_amounts(roost.state)
        _compare_free_amounts(roost.state.fork())


def _compare_free_amounts(state):
    """Compare the free amounts of all hosts with the columns."""
    class_id = state.class_ids.id_of(GPU)
    if class_id is None:
        return
    free, columns, rows = free_devices(state, class_id), state.hosts.columns, state.class_rows(class_id).tolist()
    gpus = state.inventory(class_id).free.each
    expected = [
        FreeAmounts(
            columns["free_vcpus"].each[row],
            columns["free_ram_mb"].each[row],
            tuple(gpus[each] if each >= 0 else 0 for each in places),
        )
        for row, places in enumerate(rows)
    ]
    assert free.of_hosts(range(len(rows))) == expected
    best = [max((gpus[each] for each in places if each >= 0), default=NO_INVENTORY) for places in rows]
    assert state.best_free(class_id).tolist() == best
    with_gpus = [host for host, places in zip(expected, rows, strict=True) if places[0] >= 0]
    assert free.sums() == (sum(host.cpus for host in with_gpus), sum(sum(host.devices) for host in with_gpus))


def _slow_rise(roost, weigher, request, row):
    """Return the rise of the loss of one host, from the state itself."""
    state, demand = roost.state, find_demand(request, GPU)
    gpus, columns = state.inventory(state.class_ids.id_of(GPU)), state.hosts.columns
    trees = [state.providers.rows_of_tree(root) for root in state.hosts.provider_row.view.tolist()]
    free = [[max(gpus.free.each[each], 0) for each in tree if gpus.total.each[each]] for tree in trees]
    table = weigher._table(host_view(state))
    cpus = sum(columns["free_vcpus"].each[at] for at in range(len(trees)) if free[at])
    fast = (
        state.traits.mask_of(state.trait_ids.id_of("CUSTOM_FAST")) if demand.required and demand.required[0] else None
    )
    own = [each for each in trees[row] if gpus.total.each[each]]
    if fast is not None and not all(fast[each] for each in own):
        return 0.0  # All GPUs of a host are of one model.
    claim = DeviceClaim(
        cpus=demand.cpus, memory=demand.memory_mb, amounts=demand.amounts, allowed=(), is_isolated=demand.is_isolated
    )
    amounts = free[row], columns["free_vcpus"].each[row], columns["free_ram_mb"].each[row]
    scarce = cpus < 1.2 * table.cpus_per_unit * sum(map(sum, free))
    after = packing.loss_after(*amounts, claim, table, scarce=scarce)
    return 0.0 if after is None else (after[0] - packing.loss(*amounts, table, scarce=scarce)) / table.unit
