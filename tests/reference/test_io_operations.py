"""The column of I/O operations equals a count of all instances, for any order of claims, moves and tasks."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from roost.engine.columns.apply import apply, undo_claim
from roost.engine.columns.state import State
from roost.model.writes import KEPT, Claim, ConsumerRow, InstanceRow, PutTask, Release
from tests.contract.stores import host, offer, provider, uuid_of

HOSTS = 3
UUIDS = 4


def new_state():
    state = State()
    for number in range(1, HOSTS + 1):
        for write in (provider(number), offer(number), host(number, provider_id=number)):
            apply(state, write)
    return state


def count_io_ops(state):
    """Return the count of instances with a task for each host."""
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
def test_io_ops_column_equals_count_of_busy_instances(drawn):
    state, next_id, claims = new_state(), 1, {}
    forks = []
    for act, *arguments in drawn:
        match act:
            case "claim" | "move":
                name, host_id, is_kept = arguments
                uuid = uuid_of(name)
                held = claims.pop(name, None)
                if held is not None and act == "claim":
                    claims[name] = held
                    continue
                flavor_id = KEPT if is_kept and act == "claim" else 1
                claim = Claim([ConsumerRow(next_id, uuid, "p", "u")], [], [InstanceRow(next_id, host_id, flavor_id)])
                next_id += 1
                # The two sides of a move can arrive in either order.
                for write in (claim, held) if is_kept else (held, claim):
                    if write is claim:
                        apply(state, claim)
                    elif held is not None:
                        apply(state, Release([held.consumers[0].id], []))
                claims[name] = claim
            case "release":
                held = claims.pop(arguments[0], None)
                if held is not None:
                    apply(state, Release([held.consumers[0].id], []))
            case "undo":
                held = claims.pop(arguments[0], None)
                if held is not None:
                    undo_claim(state, held)
            case "task":
                apply(state, PutTask(uuid_of(arguments[0]), arguments[1]))
            case "fork":
                forks.append((state, count_io_ops(state)))
                state = state.fork()
        assert state.hosts.column("num_io_ops").tolist() == count_io_ops(state)
        assert sum(state.hosts.tasks.values()) == sum(count_io_ops(state))
    for older, before in forks:
        assert older.hosts.column("num_io_ops").tolist() == before
