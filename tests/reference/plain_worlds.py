"""Random fleets and requests, as plain objects for the slow twins and as product types."""

from random import Random

from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostFacts, HostSpec, PciPool
from roost.model.image import Image
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Destination, Request
from tests.reference import scheduler as slow
from tests.reference.candidates import Forest, Group, Node, Stock
from tests.support.fleets.forests import AGGREGATES, TRAITS, query_of, random_forest, uuid_of

FILTERS = ["compute", "image_properties", "server_group_anti_affinity", "server_group_affinity"]
POLICIES = ("affinity", "anti-affinity", "fault-domain", "soft-affinity", "soft-anti-affinity")


def flat_forest(random: Random) -> Forest:
    """Return hosts with one provider each, of a few kinds, so that many have equal scores."""
    kinds = [
        {"VCPU": Stock(total=random.choice((4, 8))), "MEMORY_MB": Stock(total=random.choice((6, 8, 16)))}
        | ({"DISK_GB": Stock(total=random.choice((4, 10)))} if random.random() < 0.7 else {})
        for _ in range(random.choice((1, 2, 4)))
    ]
    return {
        f"p{number}": Node(
            stocks=dict(random.choice(kinds)),
            traits=frozenset(trait for trait in TRAITS[:2] if random.random() < 0.3),
            aggregates=frozenset(name for name in AGGREGATES if random.random() < 0.3),
        )
        for number in range(random.choice((1, 2, 5, 9, 14)))
    }


def random_world(random: Random) -> slow.World:
    is_flat = random.random() < 0.6
    features = frozenset({"units"}) if random.random() < 0.3 else frozenset()
    forest = flat_forest(random) if is_flat else random_forest(random, random.randint(2, 8), features)
    roots = [name for name, node in forest.items() if node.parent is None]
    random.shuffle(roots)
    hosts = [
        slow.Host(
            name=name,
            cell=random.choice(("cell-a", "cell-a", "cell-b")),
            rack=random.choice(("", "r1", "r2", "r3")),
            num_io_ops=random.choice((0, 0, 4)),
            failed_builds=random.choice((0, 0, 0, 1)),
            hypervisor_version=random.choice((0, 0, 7)),
            is_down=random.random() < 0.1,
            devices=random.choice((0, 0, 0, 2, 120)),
        )
        for name in roots
        if random.random() < 0.95
    ]
    aggregates: dict[str, dict[str, str]] = {
        name: {"availability_zone": zone} for name, zone in zip(AGGREGATES, ("east", "west", "west"), strict=True)
    }
    if random.random() < 0.4:
        key = slow.option_of(random.choice(list(slow.MULTIPLIERS)))
        for name in random.sample(AGGREGATES, 2):
            aggregates[name][key] = random.choice(("2.5", "-1", "0", "0.25", "much"))
    groups = {f"g-{policy}": slow.ServerGroup(policy, random.choice((1, 1, 2))) for policy in POLICIES}
    return slow.World(forest, hosts, aggregates, groups)


def fleet_of(world: slow.World) -> Fleet:
    """Convert a plain world to a fleet."""
    return Fleet(
        aggregates=[
            Aggregate(uuid=str(uuid_of(name)), name=name, metadata=dict(pairs))
            for name, pairs in world.aggregates.items()
        ],
        providers=[
            ProviderSpec(
                uuid=str(uuid_of(name)),
                name=name,
                traits=node.traits,
                parent_uuid=None if node.parent is None else str(uuid_of(node.parent)),
                inventories={
                    resource_class: Inventory(
                        total=stock.total,
                        reserved=stock.reserved,
                        min_unit=stock.min_unit,
                        max_unit=stock.max_unit,
                        step_size=stock.step_size,
                        allocation_ratio=stock.ratio,
                    )
                    for resource_class, stock in node.stocks.items()
                },
                aggregates=frozenset(str(uuid_of(each)) for each in node.aggregates),
            )
            for name, node in world.forest.items()
        ],
        hosts=[
            HostSpec(
                provider_uuid=str(uuid_of(host.name)),
                host=host.name,
                node=host.name,
                facts=HostFacts(
                    cell=host.cell,
                    rack=host.rack,
                    num_io_ops=host.num_io_ops,
                    failed_builds=host.failed_builds,
                    hypervisor_version=host.hypervisor_version,
                    is_forced_down=host.is_down,
                    pci_pools=(PciPool(vendor_id="8086", product_id="154c", count=host.devices),),
                ),
            )
            for host in world.hosts
        ],
        groups=[
            ServerGroup(uuid=str(uuid_of(name)), name=name, policy=group.policy, max_server_per_host=group.limit)
            for name, group in world.groups.items()
        ],
    )


def random_wish(random: Random, world: slow.World) -> slow.Wish:
    def sometimes(value, other, chance=0.15):
        return value if random.random() < chance else other

    names = [host.name for host in world.hosts] or ["nobody"]
    main = Group(
        resources={"VCPU": random.choice((1, 1, 2)), "MEMORY_MB": random.choice((1, 1, 2, 4))}
        | sometimes({"DISK_GB": 1}, {}, 0.3),
        required=sometimes((frozenset({random.choice(TRAITS[:2])}),), ()),
        forbidden=sometimes(frozenset({TRAITS[2]}), frozenset()),
    )
    others = [
        Group(suffix=f"_{number}", resources={random.choice(("CUSTOM_DEVICE", "CUSTOM_DEVICE", "DISK_GB")): 1})
        for number in range(sometimes(random.choice((1, 2)), 0))
    ]
    return slow.Wish(
        groups=(main, *others),
        distro=random.choice(("", "debian", "fedora")),
        policy=random.choice(("none", "isolate")),
        count=sometimes(random.choice((2, 3, 7, 20)), 1, 0.3),
        group=sometimes(random.choice(list(world.groups)), None, 0.4),
        domain=random.choice(("d1", "d2")),
        zones=sometimes(random.choice((("east",), ("west",), ("east", "west"))), ()),
        ignored=sometimes(tuple(name.upper() for name in random.sample(names, 1)), ()),
        forced=sometimes(tuple(name.upper() for name in random.sample(names, random.choice((1, len(names))))), ()),
        destination=sometimes(random.choice(names), None, 0.1) if world.hosts else None,
        cell=sometimes(random.choice(("cell-a", "cell-b", "cell-c")), None),
        may_leave_cell=random.random() < 0.5,
    )


def request_of(wish: slow.Wish) -> Request:
    """Convert a plain wish to a request."""
    main, *others = wish.groups
    extra_specs = {f"trait:{trait}": "required" for traits in main.required for trait in traits}
    extra_specs |= {f"trait:{trait}": "forbidden" for trait in main.forbidden} | {"group_policy": wish.policy}
    destination = None
    if wish.destination is not None or wish.cell is not None:
        destination = Destination(host=wish.destination, cell=wish.cell, allow_cross_cell_move=wish.may_leave_cell)
    return Request(
        flavor=Flavor(
            name="f",
            vcpus=main.resources["VCPU"],
            memory_mb=main.resources["MEMORY_MB"],
            root_gb=main.resources.get("DISK_GB", 0),
            extra_specs=extra_specs,
        ),
        groups=query_of(slow.Query(groups=tuple(others))).groups if others else (),
        group=None if wish.group is None else str(uuid_of(wish.group)),
        hints={"fault_domain": wish.domain},
        count=wish.count,
        availability_zone=",".join(wish.zones) or None,
        ignore_hosts=wish.ignored,
        force_hosts=wish.forced,
        destination=destination,
        image=Image(properties={"os_distro": wish.distro}) if wish.distro else None,
    )


def random_options(random: Random) -> dict[str, float]:
    chosen = random.sample(list(slow.MULTIPLIERS), random.choice((0, 0, 2, 5)))
    values = {name: random.choice((0.0, 0.5, 1.0, 3.0, -1.0)) for name in chosen}
    return {
        slow.option_of(name): abs(value) if name.startswith(("soft", "pci")) else value
        for name, value in values.items()
    }
