"""The column of I/O operations against a count of all instances, whatever order claims, moves and tasks come in."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns.apply import apply, undo_claim
from roost.engine.columns.state import State
from roost.model.writes import KEPT, Claim, ConsumerRow, InstanceRow, PutTask, Release
from tests.contract.stores import host, offer, provider, uuid_of

HOSTS = 3
UUIDS = 4


def fresh():
    state = State()
    for number in range(1, HOSTS + 1):
        for write in (provider(number), offer(number), host(number, provider_id=number)):
            apply(state, write)
    return state


def counted(state):
    """Count them one by one."""
    found = Counter(
        holder.instance.host_id
        for holder in state.holders_by_id.values()
        if holder.instance is not None and state.holders[holder.uuid] is holder and holder.uuid in state.tasks
    )
    return [found[state.hosts.ids[row]] for row in range(len(state.hosts))]


@st.composite
def acts(draw):
    return [
        draw(
            st.one_of(
                st.tuples(st.just("claim"), st.integers(1, UUIDS), st.integers(1, HOSTS), st.booleans()),
                st.tuples(st.just("move"), st.integers(1, UUIDS), st.integers(1, HOSTS), st.booleans()),
                st.tuples(st.just("release"), st.integers(1, UUIDS)),
                st.tuples(st.just("undo"), st.integers(1, UUIDS)),
                st.tuples(st.just("task"), st.integers(1, UUIDS), st.booleans()),
                st.tuples(st.just("fork")),
            )
        )
        for _ in range(draw(st.integers(1, 30)))
    ]


@given(acts())
def test_the_column_is_the_count_of_instances_with_such_tasks(drawn):
    state, next_id, claims = fresh(), 1, {}
    forks = []
    for act, *told in drawn:
        match act:
            case "claim" | "move":
                name, host_id, is_kept = told
                uuid = uuid_of(name)
                held = claims.pop(name, None)
                if held is not None and act == "claim":
                    claims[name] = held
                    continue
                flavor_id = KEPT if is_kept and act == "claim" else 1
                claim = Claim([ConsumerRow(next_id, uuid, "p", "u")], [], [InstanceRow(next_id, host_id, flavor_id)])
                next_id += 1
                # Of a move either side may be read first.
                for write in (claim, held) if is_kept else (held, claim):
                    if write is claim:
                        apply(state, claim)
                    elif held is not None:
                        apply(state, Release([held.consumers[0].id], []))
                claims[name] = claim
            case "release":
                held = claims.pop(told[0], None)
                if held is not None:
                    apply(state, Release([held.consumers[0].id], []))
            case "undo":
                held = claims.pop(told[0], None)
                if held is not None:
                    undo_claim(state, held)
            case "task":
                apply(state, PutTask(uuid_of(told[0]), told[1]))
            case "fork":
                forks.append((state, counted(state)))
                state = state.fork()
        assert state.hosts.column("num_io_ops").tolist() == counted(state)
        assert sum(state.hosts.tasks.values()) == sum(counted(state))
    for older, before in forks:
        assert older.hosts.column("num_io_ops").tolist() == before
