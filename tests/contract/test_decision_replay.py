"""Every stored decision replays to itself, across restarts, snapshots and pruning."""

import random
from collections import Counter

import msgspec
import pytest

from roost.app import Roost, open_reader, open_roost
from roost.engine.columns.apply import apply, recount_hosts
from roost.engine.columns.state import State
from roost.errors import BadSettings, NotFound, StateLost, Unavailable
from roost.model.fleet import Departure
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.model.stored_decision import moment_of
from roost.model.writes import PutProvider
from roost.placement.current import Current
from roost.placement.decision_past import rebuild_state
from roost.scheduler.explain import decision_rows
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from roost.store import snapshot_program
from roost.store.sqlite.store import SqliteStore
from tests.contract.races import RivalStore, batches, race
from tests.contract.replays import LOST_RACE, keep_no_feed, replay_all
from tests.contract.stores import SHARED, URL_FIXTURES, DurableWorld, MemoryWorld, SqliteWorld, World
from tests.support.databases import postgres
from tests.support.fleets.products import fleet, request, settings_for
from tests.support.fleets.worlds import (
    digest,
    host,
    hosts,
    merge_fleets,
    roost_on,
    roost_with,
    settings_of,
    small_request,
    uuid_named,
)

pytestmark = pytest.mark.long


def snapshot(world: World) -> None:
    """Write a snapshot now, if the store supports snapshots."""
    if not isinstance(world, MemoryWorld):
        snapshot_program.write_snapshot(world.url)


def run_workload(
    world: World, recipe: Recipe, *, settings, draw: random.Random, often: float
) -> tuple[Roost, list[str]]:
    """Run a workload in groups of random size, with restarts and snapshots; return the product and decision uuids."""
    workload, uuids = generate(recipe, Options()), []
    roost = Roost(world.open(), settings)
    roost.install(workload.fleet)
    acts = [event.act for event in workload.events]
    while acts:
        size = draw.choice((1, 2, 7, 40, 150))
        uuids += [decision.uuid for decision in roost.work(acts[:size]) if decision is not None]
        acts = acts[size:]
        if draw.random() < often:
            snapshot(world)
        if draw.random() < often:
            roost.close()
            roost = Roost(world.open(), settings)
    return roost, uuids


@pytest.mark.parametrize("options", [{}, {"host_subset_size": 3, "shuffle": True, "group_max": 16}])
def test_every_decision_replays_to_itself(world, options):
    recipe = Recipe(hosts=20, requests=100, seed=11)
    roost, uuids = run_workload(world, recipe, settings=settings_of(**options), draw=random.Random(4), often=0.2)
    counts = replay_all(roost, uuids)
    assert counts.keys() == {"granted", "refused"}
    assert counts.total() == 100


def test_feed_since_the_first_snapshot_equals_the_tables(world):
    roost, _ = run_workload(
        world, Recipe(hosts=20, requests=150, seed=8), settings=settings_of(), draw=random.Random(3), often=0.1
    )
    past = roost._store.past(roost.state.position, roost._store.visible_changes)
    state = State()
    for write in past.writes:
        apply(state, write)
    recount_hosts(state)
    assert past.own == []
    assert digest(state) == digest(roost.state) == digest(Current(world.open()).state)


def test_provider_below_a_newer_parent_survives_restart_and_snapshot(durable):
    roost = Roost(durable.open(), settings_of())
    roost.install(hosts(2))
    providers = roost.state.providers
    moved = PutProvider(providers.ids[0], uuid_bytes(providers.uuids[0]), "h0", providers.ids[1], providers.ids[1], 1)
    roost._current.write([moved])
    snapshot(durable)
    uuid = roost.decide(small_request()).uuid
    assert replay_all(roost, [uuid]) == {"granted": 1}
    state = rebuild_state(roost._store, roost.decision(uuid), moment_of(decision_rows.find_row(uuid, roost._store)))
    loaded = Current(durable.open()).state
    assert providers.ids == state.providers.ids == loaded.providers.ids
    assert providers.tree == state.providers.tree == loaded.providers.tree == {1: [0, 1]}


def snapshot_positions(world: DurableWorld, store) -> list[int]:
    if isinstance(world, SqliteWorld):
        return [row[0] for row in store._connection.execute("SELECT position FROM snapshot WHERE part = 0 ORDER BY 1")]
    return [row[0] for row in store._link.read("SELECT position FROM snapshot WHERE part = 0 ORDER BY 1", ())]


def test_pruned_decisions_are_refused_and_the_rest_replays(durable, monkeypatch):
    keep_no_feed(monkeypatch)
    draw, settings = random.Random(1), settings_of()
    roost, uuids = run_workload(
        durable, Recipe(hosts=20, requests=150, seed=2), settings=settings, draw=draw, often=0.5
    )
    store = roost._store
    before = snapshot_positions(durable, store)
    assert before[0] == 0
    assert len(before) > 3
    kept = [decision.uuid for decision in roost.decisions(1000)]
    rows = store.evidence(newest=1000)[::-1]
    oldest_s = rows[len(rows) // 2].decided_at_s
    while store.prune(older_than_s=oldest_s, max_bytes=10**12):
        pass
    left = [decision.uuid for decision in roost.decisions(1000)]
    assert 0 < len(left) < len(kept) == len(uuids)
    # Only feed entries and snapshots that no remaining decision needs are deleted.
    assert 0 < snapshot_positions(durable, store)[0] < before[-1]
    assert replay_all(roost, left).keys() == {"granted", "refused"}
    with pytest.raises(NotFound, match=f"no such decision: {uuids[0]}"):
        roost.replay(uuids[0])
    # Decisions continue, also after a restart.
    roost.close()
    roost = Roost(durable.open(), settings)
    roost.work([Departure(instance_uuids=(pick.instance_uuid,)) for pick in roost.decision(left[0]).picks])
    fresh = [decision.uuid for decision in roost.work([small_request()] * 5) if decision is not None]
    assert replay_all(roost, [*fresh, *left]).total() == len(left) + 5


def test_byte_limit_of_pruning_holds_regardless_of_the_loss(durable, monkeypatch):
    keep_no_feed(monkeypatch)
    monkeypatch.setattr("roost.store.servers.evidence_size.AGAIN_S", -1.0)
    roost = Roost(durable.open(), settings_of())
    roost.install(hosts(5))
    uuids = [decision.uuid for decision in roost.work([small_request()] * 10)]
    for max_bytes in range(12_000, -1, -1_500):
        while roost._store.prune(older_than_s=0.0, max_bytes=max_bytes):
            pass
        replay_all(roost, [decision.uuid for decision in roost.decisions(100)])  # equal, or refused
    assert roost.decisions(100) == []
    # Replays work again after the next snapshot.
    snapshot(durable)
    uuids = [roost.decide(small_request()).uuid for _ in range(3)]
    assert replay_all(roost, uuids) == {"granted": 3}


def test_replay_without_a_snapshot_is_refused(durable):
    roost = Roost(durable.open(), settings_of())
    roost.install(hosts(3))
    decision = roost.decide(small_request())
    statement = "DELETE FROM snapshot"
    if isinstance(durable, SqliteWorld):
        roost._store._connection.execute(statement)
    else:
        roost._store._link.connection.execute(statement)
    expected = f"decision {decision.uuid} cannot be replayed: the state that it saw is no longer kept"
    with pytest.raises(StateLost, match=expected) as error:
        roost.replay(decision.uuid)
    assert error.value.exit_code == 4


def test_gap_in_the_feed_is_detected(tmp_path):
    with Roost(SqliteStore(tmp_path / "roost.db"), settings_of()) as roost:
        roost.install(hosts(3))
        uuids = [roost.decide(small_request()).uuid for _ in range(3)]
        roost._store._connection.execute("DELETE FROM feed WHERE position = 2")
        assert replay_all(roost, uuids) == {"the state that it saw is no longer kept": 3}


def test_reader_replays_while_the_server_runs(tmp_path, postgres_url):
    for config, data in ((None, tmp_path), (settings_for(postgres_url, tmp_path), None)):
        with open_roost(config, data) as server:
            server.install(fleet(3, vcpus=8))
            decision = server.decide(request())
            with open_reader(config, data, environ={}) as reader:
                assert reader.replay(decision.uuid).is_same
                server.work([request()] * 5)
                assert reader.replay(server.decisions(1)[0].uuid).is_same
                with pytest.raises(Unavailable, match="for reading only"):
                    reader.decide(request())
                with pytest.raises(NotFound):
                    reader.replay("00000000-0000-0000-0000-000000000000")
                assert not reader._store.start_snapshot(every_bytes=1)


def test_past_state_of_a_decision_can_be_opened():
    roost = roost_with(hosts(2))
    first = roost.decide(small_request(vcpus=3))
    before = roost.fork()
    second = roost.decide(small_request(vcpus=2))
    roost.decide(small_request(vcpus=8))
    past = roost.as_of(second.uuid)
    assert digest(past.state) == digest(before.state)
    assert past.state.holders.keys() == {bytes.fromhex(first.picks[0].instance_uuid.replace("-", ""))}
    assert past.decide(small_request(vcpus=8)).is_granted
    assert past.decisions() == []


def test_replay_with_other_settings_reports_the_affected_hosts():
    large = host("large", VCPU=64, MEMORY_MB=64)
    roost = roost_with(merge_fleets(host("small", VCPU=8, MEMORY_MB=64), large, host("full", VCPU=1, MEMORY_MB=1)))
    decision = roost.decide(small_request(vcpus=2))
    assert decision.picks[0].host == "large"
    pack = settings_of(options={"cpu_weight_multiplier": -1.0, "ram_weight_multiplier": 0.0})
    found = roost.replay(decision.uuid, pack)
    assert not found.is_same
    assert {"picks", "scales", "best"} <= set(found.fields)
    picks = {each.node: (each.picks_then, each.picks_now) for each in found.differences}
    assert picks == {"large": (1, 0), "small": (0, 1)}
    small_host = next(each for each in found.differences if each.node == "small")
    assert (small_host.then.total, small_host.now.total) == (1.125, -0.125)
    assert found.stored == decision


def test_replay_with_other_filters_reports_the_refused_hosts():
    roost = roost_with(
        merge_fleets(host("a", facts=HostFacts(is_disabled=True)), host("b")), settings=settings_of(enabled_filters=[])
    )
    decision = roost.decide(small_request())
    assert decision.picks[0].host == "a"
    found = roost.replay(decision.uuid, settings_of())
    one, two = found.differences
    assert (one.node, one.then.refused_by, one.now.refused_by) == ("a", "", "compute")
    assert (two.node, two.picks_then, two.picks_now) == ("b", 0, 1)
    with pytest.raises(BadSettings, match="could not be found"):
        roost.replay(decision.uuid, settings_of(enabled_filters=["NobodyFilter"]))


def test_replay_uses_the_settings_of_the_record(world):
    packing_settings = settings_of(options={"ram_weight_multiplier": -1.0, "cpu_weight_multiplier": -1.0})
    with Roost(world.open(), packing_settings) as roost:
        roost.install(merge_fleets(host("large", VCPU=64, MEMORY_MB=64), host("small")))
        decision = roost.decide(small_request())
        assert decision.picks[0].host == "small"
    with Roost(world.open(), settings_of()) as roost:
        assert roost.decide(small_request()).picks[0].host == "large"
        assert roost.replay(decision.uuid).is_same


def test_replay_uses_seed_instances_and_user_of_the_record():
    roost = roost_with(hosts(6), settings=settings_of(host_subset_size=4))
    named = tuple(uuid_named(name) for name in ("one", "two", "three"))
    decisions = roost.work(
        [small_request(count=3, instance_uuids=named, user_id="u", project_id="p"), small_request(count=50)]
    )
    assert [decision.is_granted for decision in decisions] == [True, False]
    for decision in decisions:
        found = roost.replay(decision.uuid)
        assert found.is_same
        assert found.again.seed == decision.seed
        assert [pick.instance_uuid for pick in found.again.picks] == list(named if decision.is_granted else ())


def test_group_commit_replays_with_releases_and_claims_in_order(world):
    roost = roost_on(world.open(), settings=settings_of(group_max=100))
    roost.install(hosts(1, VCPU=2, MEMORY_MB=100))
    held = roost.work([small_request(vcpus=2)])[0].picks[0].instance_uuid
    acts = [
        small_request(vcpus=2),
        Departure(instance_uuids=(held,)),
        small_request(),
        small_request(),
        small_request(),
    ]
    decisions = [decision for decision in roost.work(acts) if decision is not None]
    assert [decision.is_granted for decision in decisions] == [False, True, True, False]
    assert len({decision.position for decision in decisions}) == 1
    assert replay_all(roost, [decision.uuid for decision in decisions]) == {"granted": 2, "refused": 2}


def test_evidence_of_an_older_version_cannot_be_replayed(monkeypatch):
    roost = roost_with(hosts(1))
    monkeypatch.setattr("roost.placement.placement_service.Placement.ahead", -1)
    decision = roost.decide(small_request())
    with pytest.raises(StateLost, match="stored by an older version"):
        roost.replay(decision.uuid)


# --- several processes -----------------------------------------------------------------------------------------------


def test_decision_that_saw_a_claim_with_a_lost_race_is_not_replayed(postgres_url, tmp_path):
    config = settings_for(postgres_url, tmp_path)
    store = RivalStore(postgres_url)
    with Roost(store, settings_of()) as first, open_roost(config) as second:
        first.install(fleet(2, vcpus=4))
        store.before = lambda: second.decide(request(4, force_hosts=("host-0",)))
        lost, saw = first.work([request(4), request(1, force_hosts=("host-1",))])
        assert lost.conflicts == ["host-0"]
        assert saw.is_granted
        # One of them saw host 0 as free, which no stored state shows.
        counts = replay_all(first, [lost.uuid, saw.uuid, *(decision.uuid for decision in second.decisions(1))])
        assert counts[LOST_RACE] == 1
        assert counts.total() == 3


@pytest.mark.parametrize(("processes", "size"), [(2, 1), (3, 16)])
def test_decisions_of_racing_processes_replay_or_are_refused(postgres_url, tmp_path, processes, size):
    config = settings_for(postgres_url, tmp_path)
    with open_roost(config) as product:
        product.install(fleet(4, vcpus=12))
    race(config, [batches([request(draw) for draw in (1, 1, 3) * 10], size)] * processes)
    with open_reader(config, None, environ={}) as reader:
        uuids = [decision.uuid for decision in reader.decisions(1000)]
        counts = replay_all(reader, uuids)
    assert counts.total() == processes * 30
    assert set(counts) <= {"granted", "refused", LOST_RACE}
    assert min(counts["granted"], counts["refused"]) > 0


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["sqlite", *SHARED])
def test_ten_thousand_decisions_replay_to_themselves(kind, tmp_path, request, capsys):
    world: World = SqliteWorld(tmp_path / "roost.db")
    if kind != "sqlite":
        world = SHARED[kind](request.getfixturevalue(URL_FIXTURES[kind]))
    recipe, draw = Recipe(hosts=100, requests=10_000, seed=5), random.Random(6)
    roost, uuids = run_workload(world, recipe, settings=settings_of(), draw=draw, often=0.1)
    counts = replay_all(roost, uuids)
    with capsys.disabled():
        kept = len(snapshot_positions(world, roost._store))
        print(f"\n{kind}: {counts.total():,} decisions replayed from {kept} snapshots: {dict(counts)}")
    world.close()
    assert counts.keys() == {"granted", "refused"}
    assert counts.total() == 10_000


@pytest.mark.soak
def test_decisions_of_repeated_races_replay_or_are_refused(postgres_server, tmp_path, capsys):
    counts = Counter[str]()
    for number in range(6):
        with postgres.fresh_database(postgres_server) as url:
            config = settings_for(url, tmp_path)
            with open_roost(config) as product:
                product.install(fleet(4, vcpus=60))
            plan = [request(vcpus) for vcpus in (1, 1, 3) * 60]
            race(config, [batches(plan, random.Random(number + at).choice((1, 4, 32))) for at in range(3)])
            with open_reader(config, None, environ={}) as reader:
                counts += replay_all(reader, [decision.uuid for decision in reader.decisions(1000)])
    with capsys.disabled():
        print(f"\n3 processes, 4 hot hosts, 6 times: {dict(counts)}")
    assert counts.total() == 6 * 3 * 180


def test_order_of_extra_specs_does_not_affect_the_decision(world):
    specs = {
        "resources2:CUSTOM_B": "9",
        "resources1:CUSTOM_A": "1",
        "resources:DISK_GB": "x",
        "resources:CUSTOM_A": "x",
    }
    base = small_request()
    written = [
        msgspec.structs.replace(base, flavor=msgspec.structs.replace(base.flavor, extra_specs=dict(pairs)))
        for pairs in (specs.items(), reversed(specs.items()))
    ]
    with Roost(world.open(), settings_of()) as roost:
        roost.install(host("a", VCPU=8, MEMORY_MB=8, CUSTOM_A=1, CUSTOM_B=1))
        decisions = [roost.decide(request) for request in written]
        assert decisions[0].warnings == decisions[1].warnings
        assert decisions[0].stages == decisions[1].stages
        assert replay_all(roost, [decision.uuid for decision in decisions]) == {"refused": 2}
    with Roost(world.open(), settings_of()) as roost:
        assert roost.decide(written[1]).stages == decisions[0].stages
