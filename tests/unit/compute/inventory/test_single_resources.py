"""Pieces: single named resources of a host, each held by one guest."""

import pytest

from roost.compute.inventory.host_use import HostUse, Size
from roost.compute.inventory.single_resources import Chosen, choose, pieces_in
from roost.model.host import HostFacts
from roost.model.work.guest_use import GuestNeeds, GuestUse
from tests.support.agents.driver_doubles import tree_of
from tests.support.fleets.worlds import uuid_named

ROOT, SMALL, LARGE = uuid_named("host-a"), "CUSTOM_PMEM_NAMESPACE_4GB", "CUSTOM_PMEM_NAMESPACE_64GB"
PIECES = {ROOT: {SMALL: ["ns2", "ns0", "ns1"], LARGE: ["ns9"]}}


def new_host(**more):
    return HostUse(HostFacts(), providers=PIECES, **more)


def size_with(**amounts):
    return Size(allocations={ROOT: {"VCPU": 1, **amounts}, uuid_named("pool"): {SMALL: 7}})


def claim_pieces(host, holder, **amounts):
    """Claim pieces for a guest; return their names."""
    return host.claim(holder, GuestNeeds(), size=size_with(**amounts)).use.pieces


def test_pieces_are_read_from_the_tree_and_need_unique_names():
    tree = tree_of("host-a")
    tree.new_child("cell", "host-a", uuid_named("cell"))
    tree.update_resources("cell", {SMALL: ["ns0"]})
    assert pieces_in(tree, ROOT) == {ROOT: {}, uuid_named("cell"): {SMALL: {"ns0"}}}
    tree.update_resources("host-a", {LARGE: ["ns0"]})
    with pytest.raises(ValueError, match="two pieces are named 'ns0'"):
        pieces_in(tree, ROOT)
    for nameless in (7, ""):
        tree.update_resources("host-a", {LARGE: [nameless]})
        with pytest.raises(ValueError, match=f"a piece of {LARGE} has no text as its name"):
            pieces_in(tree, ROOT)


def test_guest_gets_as_many_free_pieces_as_it_holds():
    host = new_host()
    assert claim_pieces(host, "a", **{SMALL: 2, LARGE: 1}) == ("ns0", "ns1", "ns9")
    assert claim_pieces(host, "b", **{SMALL: 1}) == ("ns2",)
    assert claim_pieces(host, "c") == ()
    refusal = host.claim("c", GuestNeeds(), size=size_with(**{SMALL: 1, LARGE: 2}))
    assert refusal.reason == (
        f"the guest needs 1 {SMALL}, but 0 of 3 are free; the guest needs 2 {LARGE}, but 0 of 1 are free"
    )
    host.release("a")
    assert claim_pieces(host, "c", **{SMALL: 1}) == ("ns0",)


def test_repeated_claim_returns_the_same_pieces_even_after_a_restart():
    host = new_host()
    claim_pieces(host, "a", **{SMALL: 1})
    claim_pieces(host, "b", **{SMALL: 1})
    host.release("a")
    for each_host in (host, new_host(instances=host.uses)):
        assert claim_pieces(each_host, "b", **{SMALL: 1}) == ("ns1",)
        assert claim_pieces(each_host, "b", **{SMALL: 2}) == ("ns1", "ns0")


def test_resize_on_the_same_host_gets_other_pieces_and_can_revert():
    host = new_host()
    claim_pieces(host, "a", **{SMALL: 1})
    for _ in range(2):
        use = host.claim_move("a", GuestNeeds(), size=size_with(**{SMALL: 2}), migration="m").use
        assert use.pieces == ("ns1", "ns2")
    host.hand_over("m", "a")
    assert host.uses["a"].pieces == ("ns0",)


def test_missing_pieces_are_reported_per_holder():
    guests = {"a": GuestUse(pieces=("ns1", "ns3")), "b": GuestUse(pieces=("ns2",))}
    host = new_host(instances=guests, migrations={"m": GuestUse(pieces=("ns4",))})
    assert host.missing_pieces == {"a": ["ns3"], "m": ["ns4"]}


def test_classes_without_pieces_are_ignored():
    assert choose({ROOT: {"VCPU": 4}}, {ROOT: {}}, taken=(), own=()) == Chosen((), ())
