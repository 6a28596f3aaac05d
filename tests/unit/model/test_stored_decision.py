import msgspec
from hypothesis import given
from hypothesis import strategies as st

from roost.model.evidence.decision import Decision, HostScore, Pick, Scale, Stage
from roost.model.names import uuid_bytes
from roost.model.stored_decision import Checks, StoredPick, checks_of, pack, pack_checks, unpack
from roost.model.writes import EvidenceRow

UUID = "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
PROVIDERS = ("c0ffee00-0000-4000-8000-000000000001", "c0ffee00-0000-4000-8000-000000000002")

weights = st.sampled_from((0.0, -0.0, 1.0, 2.5, -3.0))
scales = st.lists(st.builds(Scale, st.just("w"), weights, weights, st.just(1.0)), max_size=4)
allocations = st.dictionaries(
    st.sampled_from(PROVIDERS), st.dictionaries(st.sampled_from(("VCPU", "DISK_GB")), st.integers(1, 9), min_size=1)
)
mappings = st.dictionaries(
    st.sampled_from(("pci0-0", "pci0-1")), st.lists(st.sampled_from(PROVIDERS), min_size=1, max_size=2).map(tuple)
)


def picks(instance_uuid):
    return st.builds(
        Pick,
        st.sampled_from(("a", "b")),
        st.sampled_from(("a", "c")),
        st.just("cell"),
        instance_uuid,
        allocations,
        st.just({}),
        mappings,
    )


@st.composite
def decisions(draw):
    drawn = draw(scales)
    best = [
        HostScore(f"host-{number}", draw(weights), [draw(weights) for _ in drawn], draw(st.sampled_from(([], [1.0]))))
        for number in range(draw(st.integers(0, 3)))
    ]
    stages, before = [], 9
    for rule in draw(st.lists(st.sampled_from(("ram", "zone")), max_size=3)):
        after = draw(st.integers(0, before))
        stages.append(Stage(rule, before, after, f"lack {rule}"))
        before = after
    alternates = draw(st.lists(picks(st.just("")), max_size=3))
    return Decision(
        uuid=UUID,
        decided_at_s=1.5,
        outcome=draw(st.sampled_from(("granted", "refused"))),
        request_id=7,
        count=draw(st.integers(1, 3)),
        picks=draw(st.lists(picks(st.just(UUID)), max_size=3)),
        alternates={"cell": alternates} if alternates else {},
        instance_uuids=draw(st.lists(st.just(UUID), max_size=2)),
        stages=stages,
        scales=drawn,
        best=best,
        reason="why",
        warnings=["so"],
        conflicts=["b"],
        position=3,
        seed=2**62 - 1,
        settings_id=4,
        search_s=0.25,
        rank_s=0.5,
    )


@given(decisions())
def test_packed_decision_unpacks_to_the_same_decision(decision):
    checks = Checks(
        [(stage.rule, stage.reason) for stage in decision.stages], [scale.weigher for scale in decision.scales]
    )
    row = EvidenceRow(
        1,
        uuid_bytes(UUID),
        decision.decided_at_s,
        decision.outcome,
        "",
        decision.settings_id,
        "",
        decision.reason,
        pack(decision, checks_id=5),
    )
    again = unpack(row, pack_checks(checks))
    assert again == decision
    assert checks_of(row) == 5


def test_pick_stored_without_mappings_unpacks_with_empty_mappings():
    chosen = StoredPick("a", "", "cell", uuid_bytes(UUID), [(uuid_bytes(PROVIDERS[0]), 0)])
    decision = Decision(uuid=UUID, decided_at_s=1.5, outcome="granted", request_id=7)
    record = msgspec.msgpack.decode(pack(decision, checks_id=5))
    older = msgspec.msgpack.decode(msgspec.msgpack.encode(chosen))[:-1]
    record[7], record[8] = [{"VCPU": 1}], [older]
    row = EvidenceRow(1, uuid_bytes(UUID), 1.5, "granted", "", 0, "", "", msgspec.msgpack.encode(record))
    assert unpack(row, pack_checks(Checks([], []))).picks == [
        Pick("a", "a", "cell", UUID, {PROVIDERS[0]: {"VCPU": 1}}, {}, {})
    ]
