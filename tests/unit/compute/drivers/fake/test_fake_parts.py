import copy

from hypothesis import given
from hypothesis import strategies as st

from roost.compute.drivers.fake.parts import SOFT, place, room_of

NAMES = ("VCPU", "MEMORY_MB", "PCPU", "SRIOV_NET_VF")
PARTS = {"gpu0": {"VGPU": 2}, "gpu1": {"VGPU": 2}, "numa0": {"VCPU": 4, "PCPU": 2}, "numa1": {"VCPU": 4}}

cells = st.dictionaries(
    st.sampled_from(["numa0", "numa1", "numa2"]),
    st.dictionaries(st.sampled_from(NAMES), st.integers(-2, 6), min_size=1),
)
gpus = st.dictionaries(st.sampled_from(["gpu0", "gpu1"]), st.fixed_dictionaries({"VGPU": st.integers(0, 3)}))
wishes = st.dictionaries(st.sampled_from([*NAMES, "VGPU", "DISK_GB"]), st.integers(1, 8))


def test_room_is_capacity_minus_use_of_each_part():
    room = room_of(PARTS, [{"gpu0": {"VGPU": 1}, "numa0": {"VCPU": 9, "FPGA": 1}}, {"gone": {"VGPU": 1}}])
    assert room == {"gpu0": {"VGPU": 1}, "gpu1": {"VGPU": 2}, "numa0": {"VCPU": -5, "PCPU": 2}, "numa1": {"VCPU": 4}}
    assert PARTS["gpu0"] == {"VGPU": 2}


def test_related_amounts_go_to_one_part_if_they_fit():
    assert place({"VCPU": 2, "PCPU": 1, "VGPU": 2}, room_of(PARTS, [])) == {
        "numa0": {"VCPU": 2, "PCPU": 1},
        "gpu0": {"VGPU": 2},
    }
    assert place({"VGPU": 3}, room_of(PARTS, [])) == {"gpu0": {"VGPU": 2}, "gpu1": {"VGPU": 1}}
    assert place({"VGPU": 5}, room_of(PARTS, [])) is None
    assert place({"VCPU": 20}, room_of(PARTS, [])) is not None
    assert place({"DISK_GB": 5}, room_of(PARTS, [])) == {}


@given(room=st.builds(lambda first, second: first | second, cells, gpus), amounts=wishes)
def test_placement_is_complete_and_only_soft_classes_overcommit(room, amounts):
    before = copy.deepcopy(room)
    uses = place(amounts, room)
    part_amounts = {name: amount for name, amount in amounts.items() if any(name in free for free in before.values())}
    free_amounts = {name: sum(max(free.get(name, 0), 0) for free in before.values()) for name in part_amounts}
    assert (uses is None) == any(
        amount > free_amounts[name] for name, amount in part_amounts.items() if name not in SOFT
    )
    if uses is None:
        assert room == before
        return
    assert {name: sum(used.get(name, 0) for used in uses.values()) for name in part_amounts} == part_amounts
    assert room == room_of(before, [uses])
    for part, used in uses.items():
        for name, amount in used.items():
            assert amount > 0
            assert name in SOFT or room[part][name] >= 0
