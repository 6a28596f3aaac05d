"""Host use with arriving and departing guests, compared with a plain list of uses."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.compute.inventory.host_use import HostUse
from roost.model.devices.pci import PciRequest
from roost.model.host import HostFacts, PciPool
from roost.model.work.guest_use import GuestNeeds, GuestUse
from roost.scheduler.numa.constraints import networks_of, topology_of
from tests.reference.host_use import PlainHost, check, has_devices, has_room
from tests.support.fleets.memory_nodes import cells, requests

pytestmark = pytest.mark.long

ACTS = ["claim", "claim", "claim", "move", "leave", "revert", "give", "confirm", "restart"]
GUESTS, MIGRATIONS = ["a", "b"], ["moves-a", "moves-b"]
POLICIES = ["legacy", "required", "preferred", "socket"]


@st.composite
def hosts(draw):
    """Draw the facts of a host without guests, with device pools of two products on its nodes."""
    numa = draw(st.none() | cells())
    nodes = [None] if numa is None else [None, *(cell.id for cell in numa.cells)]
    places = [(product, node) for product in "xy" for node in nodes]
    pools = [
        PciPool(vendor_id="8086", product_id=product, numa_node=node, count=draw(st.integers(0, 3)))
        for product, node in draw(st.lists(st.sampled_from(places), unique=True))
    ]
    return HostFacts(host_ip="10.0.0.1", numa=numa, pci_pools=tuple(pools))


@st.composite
def needs(draw):
    """Draw the needs of a guest, with the networks and ratios in its limits."""
    request = draw(requests())
    networks = networks_of(request)
    pci = [
        PciRequest(
            alternatives=({"product_id": product},),
            count=draw(st.integers(1, 2)),
            numa_policy=draw(st.sampled_from(POLICIES)),
        )
        for product in draw(st.sampled_from(["", "", "x", "y", "xy"]))
    ]
    ratio = draw(st.sampled_from([None, 1.0, 2.0]))
    topology_limits = {"cpu_allocation_ratio": ratio, "ram_allocation_ratio": ratio}
    if networks is not None:
        physnets = sorted(networks.physnets)
        topology_limits["network_metadata"] = {"physnets": physnets, "tunneled": networks.is_tunneled}
    limits = {} if ratio is None else {"numa_topology": topology_limits}
    wanted = GuestNeeds(topology=topology_of(request), pci=tuple(pci), limits=limits)
    return wanted, networks if limits else None, ratio and (ratio, ratio)


class Walk:
    """A host and its plain twin, with the same events."""

    def __init__(self, bare, *, is_packing):
        self.host, self.plain, self.is_packing = HostUse(bare, is_packing=is_packing), PlainHost(bare), is_packing

    def step(self, draw):
        """Apply one random event to both."""
        guest, migration = draw(st.sampled_from(list(zip(GUESTS, MIGRATIONS, strict=True))))
        act = draw(
            st.sampled_from(["claim", "claim", "claim", "move", "leave", "revert", "give", "confirm", "restart"])
        )
        if act in ("claim", "move"):
            self.claim(guest, draw(needs()), migration=migration if act == "move" else None)
        elif act in ("leave", "revert"):
            holder, successor = (guest, migration) if act == "leave" else (migration, guest)
            self.host.hand_over(holder, successor)
            self.hand_over(holder, successor)
        elif act == "restart":
            self.restart(draw(st.permutations(sorted(self.host.uses))))
        else:
            holder = guest if act == "give" else migration
            self.host.release(holder)
            self.plain.guests.pop(holder, None)

    def hand_over(self, holder, successor):
        """Move the use of one consumer to another in the plain list, if it has any."""
        if holder in self.plain.guests:
            self.plain.guests[successor] = self.plain.guests.pop(holder)

    def claim(self, guest, guest_needs, *, migration):
        """Claim for a guest, and check the admission against the plain model."""
        wanted, networks, ratios = guest_needs
        before = dict(self.plain.guests)
        if migration is not None and migration not in before:
            self.hand_over(guest, migration)
        facts = self.plain.facts(without=guest)
        more = {} if migration is None else {"migration": migration}
        admission = (self.host.claim if migration is None else self.host.claim_move)(guest, wanted, **more)
        room = has_room(facts, wanted.topology, wanted.pci, needs=networks, ratios=ratios)
        devices = has_devices(facts, wanted.pci)
        assert ("NUMA" in admission.reason, "devices: " in admission.reason) == (not room, not devices)
        if admission.use is None:
            assert admission.reason
            self.plain.guests = before
        else:
            assert not admission.reason
            check(facts, wanted.topology, wanted.pci, admission.use)
            self.plain.guests[guest] = admission.use

    def restart(self, order):
        """Rebuild the host use from stored uses in any order, as after a restart."""
        uses = msgspec.json.decode(msgspec.json.encode(self.host.uses), type=dict[str, GuestUse])
        instances = {name: uses[name] for name in order if name in GUESTS}
        migrations = {name: uses[name] for name in order if name in MIGRATIONS}
        bare = self.plain.bare
        self.host = HostUse(bare, instances=instances, migrations=migrations, is_packing=self.is_packing)


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_host_use_matches_plain_list_of_guests(data):
    bare = data.draw(hosts())
    walk = Walk(bare, is_packing=data.draw(st.booleans()))
    for _ in range(data.draw(st.integers(1, 12))):
        walk.step(data.draw)
        assert walk.host.uses == walk.plain.guests
        assert walk.host.facts == walk.plain.facts()
    for holder in GUESTS + MIGRATIONS:
        walk.host.release(holder)
    assert walk.host.facts == bare
