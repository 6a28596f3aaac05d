"""Lost requests and replies: updates still converge, and allocation changes are applied once."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from roost import PlacementDirect
from roost.direct.direct_report import DirectHttp
from roost.errors import Conflict, PlacementGone, ReshapeFailed, SyncFailed
from tests.contract.report.reshapes import assert_moved, move_gpus_to_children
from tests.support.agents.report_clients import PROJECT, USER, World

PARENTS = {"a": "host", "b": "a", "c": "host"}
CLASSES = ("VCPU", "VGPU", "CUSTOM_GOLD")
LABELS = ("CUSTOM_FAST", "HW_CPU_X86_AVX")


class LossyHttp:
    """Loses up to ``losses`` requests or replies at random."""

    def __init__(self, inner, seed, *, losses):
        self._inner, self._random, self._left = inner, Random(seed), losses

    def ask(self, method, path, body=None, *, version):
        """Send a request, unless it is lost."""
        draw = self._random.random() if self._left else 1.0
        if draw < 0.4:
            self._left -= 1
            if draw < 0.2:
                self._inner.ask(method, path, body, version=version)
            raise PlacementGone("lost")
        return self._inner.ask(method, path, body, version=version)


OFFER = st.tuples(
    st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 3)),
    st.sets(st.sampled_from(LABELS)),
    st.sets(st.sampled_from(["agg", "zone"])),
)
# Providers besides the host; no provider without its parent.
SHAPE = st.dictionaries(st.sampled_from([*PARENTS]), OFFER).map(
    lambda shape: {name: offer for name, offer in shape.items() if PARENTS[name] in {"host", *shape}}
)


def edit(world, tree, shape):
    """Edit a tree into a shape."""
    for name, parent in PARENTS.items():
        if name not in shape:
            if tree.exists(world.u(name)):
                tree.remove(world.u(name))
            continue
        if not tree.exists(world.u(name)):
            tree.new_child(world.n(name), world.u(parent), world.u(name))
        totals, traits, aggregates = shape[name]
        tree.update_inventory(world.u(name), {each: {"total": total} for each, total in totals.items()})
        tree.update_traits(world.u(name), traits)
        tree.update_aggregates(world.u(name), map(world.u, aggregates))


def retry(act):
    """Repeat an action until it succeeds."""
    for _ in range(20):
        try:
            return act()
        except (Conflict, SyncFailed, PlacementGone, ReshapeFailed):
            continue
    raise AssertionError("no try succeeded")


@settings(max_examples=30)
@given(shapes=st.lists(SHAPE, min_size=1, max_size=3), seed=st.integers(0, 2**32), losses=st.integers(0, 12))
def test_updates_end_with_placement_matching_the_host(shapes, seed, losses):
    with PlacementDirect("sqlite://") as client:
        world = World(LossyHttp(DirectHttp(client), seed, losses=losses))
        client_under_test = world.client(tries=2)
        for shape in shapes:

            def once(shape=shape):
                tree = client_under_test.get_provider_tree_and_ensure_root(world.u("host"), world.n("host"))
                edit(world, tree, shape)
                client_under_test.update_from_provider_tree(tree)

            retry(once)
        clean = World(DirectHttp(client))
        assert clean.children("host") == sorted(["host", *shapes[-1]])
        for name, (totals, traits, aggregates) in shapes[-1].items():
            assert clean.totals(name) == totals
            assert set(clean.of(name, "traits")) == traits
            assert set(clean.of(name, "aggregates")) == {clean.u(each) for each in aggregates}


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), losses=st.integers(0, 12))
def test_reshapes_end_with_everything_moved(seed, losses):
    with PlacementDirect("sqlite://") as client:
        clean = World(DirectHttp(client))
        clean.provider("host", VCPU=8, VGPU=4)
        clean.hold("one", host={"VCPU": 1, "VGPU": 1})
        clean.hold("two", host={"VCPU": 2, "VGPU": 2})
        world = World(LossyHttp(DirectHttp(client), seed, losses=losses))
        client_under_test = world.client(tries=2)

        def once():
            tree = client_under_test.get_provider_tree_and_ensure_root(world.u("host"))
            if tree.data(world.u("host")).inventory.keys() == {"VCPU"}:
                client_under_test.update_from_provider_tree(tree)
            else:
                client_under_test.update_from_provider_tree(*move_gpus_to_children(world, client_under_test))

        retry(once)
        assert_moved(clean)


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), losses=st.integers(0, 8))
def test_allocation_changes_are_applied_once(seed, losses):
    with PlacementDirect("sqlite://") as client:
        clean = World(DirectHttp(client))
        for name in ("a", "b"):
            clean.provider(name, VCPU=8)
        world = World(LossyHttp(DirectHttp(client), seed, losses=losses))
        client_under_test = world.client(tries=10)
        request = {"allocations": world.payload(a={"VCPU": 2})["allocations"]}
        assert client_under_test.claim_resources(world.u("i"), request, project_id=PROJECT, user_id=USER)
        client_under_test.add_resources_to_instance_allocation(
            world.u("i"), world.amounts(a={"VCPU": 3}, b={"VCPU": 1})
        )
        client_under_test.remove_resources_from_instance_allocation(world.u("i"), world.amounts(a={"VCPU": 1}))
        assert client_under_test.move_allocations(world.u("i"), world.u("migration"))
        assert clean.held("migration") == clean.amounts(a={"VCPU": 4}, b={"VCPU": 1})
        assert clean.held("i") == {}
        assert client_under_test.delete_allocation_for_instance(world.u("migration"))
        assert clean.held("migration") == {}
