from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.engine.columns.apply import apply, recount_hosts, undo_claim
from roost.model import writes as model_writes
from roost.model.host import HostFacts
from tests.support.fleets.forests import Stock, inventory_row, put_provider, uuid_of
from tests.support.fleets.state_histories import History, check_state, new_state, state_content

seeds = st.integers(0, 2**32)


@settings(max_examples=150)
@given(seeds, st.integers(1, 60))
def test_derived_columns_equal_a_recomputation_after_any_history(seed, writes):
    state = new_state()
    history = History(state, Random(seed))
    for _ in range(3):
        history.run(writes // 3 + 1)
        check_state(state)


@settings(max_examples=100)
@given(seeds, st.integers(20, 60))
def test_undo_claim_restores_the_previous_state(seed, writes):
    state = new_state()
    history = History(state, Random(seed))
    history.run(writes)
    claim = history.claim()
    if claim is None:
        return
    before = state_content(state)
    apply(state, claim)
    assert state_content(state) != before
    undo_claim(state, claim)
    assert state_content(state) == before
    check_state(state)


@settings(max_examples=100)
@given(seeds, st.integers(5, 40))
def test_fork_and_origin_are_independent(seed, writes):
    state = new_state()
    History(state, Random(seed)).run(writes)
    before = state_content(state)
    fork = state.fork()
    assert state_content(fork) == before
    other = History(fork, Random(seed + 1))
    other._next = 1000
    other.run(writes)
    check_state(fork)
    assert state_content(state) == before
    after = state_content(fork)
    again = History(state, Random(seed + 1))
    again._next = 1000
    again.run(writes)
    assert state_content(state) == after == state_content(fork)


def test_repeated_release_changes_nothing():
    state = new_state()
    history = History(state, Random(5))
    history.run(60)
    release = history.release()
    apply(state, release)
    before = state_content(state)
    apply(state, release)
    assert state_content(state) == before


def test_release_raises_the_listed_generations():
    state = new_state()
    put_provider(state, 1, "p1", None)
    apply(state, model_writes.PutInventories(1, 0, [inventory_row("VCPU", Stock(total=8))]))
    consumer = model_writes.ConsumerRow(5, uuid_of("c").bytes, "p", "u")
    apply(state, model_writes.Claim([consumer], [(5, 1 << model_writes.CLASS_BITS | 1, 2)]))
    apply(state, model_writes.Release([5], [], [], [1]))
    assert state.providers.generation.view[0] == 3
    assert state.inventory(1).free.view[0] == 8


def test_older_inventory_that_is_read_later_is_ignored():
    state = new_state()
    put_provider(state, 1, "p1", None)
    apply(state, model_writes.PutInventories(1, 1, [inventory_row("VCPU", Stock(total=8))]))
    apply(state, model_writes.PutInventories(1, 0, [inventory_row("VCPU", Stock(total=4))]))
    assert state.inventory(1).free.view[0] == 8
    assert state.providers.generation.view[0] == 2


def put_host(state, provider_id):
    facts = msgspec.Raw(msgspec.msgpack.encode(HostFacts()))
    apply(state, model_writes.PutHost(provider_id, provider_id, f"host-{provider_id}", f"node-{provider_id}", facts, 0))


def test_moved_provider_moves_its_totals_to_the_new_host():
    state = new_state()
    for number in (1, 2):
        put_provider(state, number, f"p{number}", None)
        put_host(state, number)
    put_provider(state, 3, "p3", 1)
    apply(state, model_writes.PutInventories(3, 0, [inventory_row("MEMORY_MB", Stock(total=512))]))
    recount_hosts(state)
    assert state.hosts.column("total_usable_ram_mb").tolist() == [512, 0]
    put_provider(state, 3, "p3", 2, version=1)
    recount_hosts(state)
    assert state.hosts.column("total_usable_ram_mb").tolist() == [0, 512]
    check_state(state)


def test_reused_name_stays_with_its_new_owner_after_a_late_rename():
    state = new_state()
    put_provider(state, 1, "old", None)
    put_provider(state, 2, "old", None)  # committed after provider 1 was renamed, but read before
    apply(state, model_writes.PutProvider(1, uuid_of("old").bytes, "new", None, 1, 1))
    assert state.providers.row_of_name == {"old": 1, "new": 0}


def test_reused_uuid_stays_with_its_new_owner_after_a_late_deletion():
    state = new_state()
    put_provider(state, 1, "p", None)
    put_provider(state, 2, "p", None)  # the same uuid and name, created after provider 1 was deleted
    apply(state, model_writes.DropProvider(1))
    assert state.providers.row_of_uuid == {str(uuid_of("p")): 1}
    assert state.providers.row_of_name == {"p": 1}


def test_deleted_group_leaves_the_columns_and_compiled_requests():
    state = new_state()
    group, epoch = state.groups[1], state.changes.epoch
    apply(state, model_writes.DropGroup(1))
    assert list(state.groups) == [2]
    assert group.uuid not in state.groups_by_uuid
    assert state.changes.epoch > epoch


def test_reused_group_uuid_stays_with_its_new_owner_after_a_late_deletion():
    state = new_state()
    uuid = state.groups[1].uuid
    apply(state, model_writes.PutGroup(3, uuid_of("anti-affinity").bytes, "again", "affinity", 1))
    apply(state, model_writes.DropGroup(1))
    assert state.groups_by_uuid[uuid] is state.groups[3]


def test_largest_allowed_ratio_does_not_overflow():
    state = new_state()
    put_provider(state, 1, "p1", None)
    stock = inventory_row("VCPU", Stock(total=2_147_483_647, ratio=3.40282e38))
    apply(state, model_writes.PutInventories(1, 0, [stock]))
    assert state.inventory(1).can_take(0, 2_147_483_647)
