"""Single resources of a host, each of which one guest at a time has."""

import pytest

from roost.compute.inventory.host_use import HostUse, Size
from roost.compute.inventory.single_resources import Chosen, choose, pieces_in
from roost.model.host import HostFacts
from roost.model.work.guest_use import GuestNeeds, GuestUse
from tests.support.agents.driver_doubles import tree_of
from tests.support.fleets.worlds import uuid_named

ROOT, SMALL, LARGE = uuid_named("host-a"), "CUSTOM_PMEM_NAMESPACE_4GB", "CUSTOM_PMEM_NAMESPACE_64GB"
PIECES = {ROOT: {SMALL: ["ns2", "ns0", "ns1"], LARGE: ["ns9"]}}


def a_host(**more):
    return HostUse(HostFacts(), providers=PIECES, **more)


def holding(**amounts):
    return Size(allocations={ROOT: {"VCPU": 1, **amounts}, uuid_named("pool"): {SMALL: 7}})


def have(host, holder, **amounts):
    """Let a guest come that holds pieces of the host; give their names."""
    return host.claim(holder, GuestNeeds(), size=holding(**amounts)).use.pieces


def test_pieces_are_those_that_the_driver_names():
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


def test_a_guest_has_as_many_pieces_as_it_holds_and_nobody_elses():
    host = a_host()
    assert have(host, "a", **{SMALL: 2, LARGE: 1}) == ("ns0", "ns1", "ns9")
    assert have(host, "b", **{SMALL: 1}) == ("ns2",)
    assert have(host, "c") == ()
    refused = host.claim("c", GuestNeeds(), size=holding(**{SMALL: 1, LARGE: 2}))
    assert refused.reason == (f"the host lacks 1 {SMALL}: 0 of 3 are free; the host lacks 2 {LARGE}: 0 of 1 are free")
    host.give_back("a")
    assert have(host, "c", **{SMALL: 1}) == ("ns0",)


def test_a_guest_that_comes_again_has_the_same_pieces_also_on_a_host_that_starts_again():
    host = a_host()
    have(host, "a", **{SMALL: 1})
    have(host, "b", **{SMALL: 1})
    host.give_back("a")
    for known in (host, a_host(instances=host.uses)):
        assert have(known, "b", **{SMALL: 1}) == ("ns1",)
        assert have(known, "b", **{SMALL: 2}) == ("ns1", "ns0")


def test_a_move_on_its_own_host_gets_others_and_can_go_back():
    host = a_host()
    have(host, "a", **{SMALL: 1})
    for _ in range(2):
        moved = host.claim_move("a", GuestNeeds(), size=holding(**{SMALL: 2}), migration="m").use
        assert moved.pieces == ("ns1", "ns2")
    host.hand_over("m", "a")
    assert host.uses["a"].pieces == ("ns0",)


def test_pieces_that_guests_have_and_that_are_gone_are_told():
    guests = {"a": GuestUse(pieces=("ns1", "ns3")), "b": GuestUse(pieces=("ns2",))}
    host = a_host(instances=guests, migrations={"m": GuestUse(pieces=("ns4",))})
    assert host.missing_pieces == {"a": ["ns3"], "m": ["ns4"]}


def test_what_is_held_of_a_class_without_pieces_is_not_looked_at():
    assert choose({ROOT: {"VCPU": 4}}, {ROOT: {}}, taken=(), own=()) == Chosen((), ())
