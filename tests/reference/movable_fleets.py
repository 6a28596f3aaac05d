"""Small random fleets with movable instances, and plans carried out on them by real decisions."""

from random import Random

from msgspec.structs import replace

from roost.errors import RoostError
from roost.model.flavor import Flavor
from roost.model.fleet import Fleet
from roost.model.group import ServerGroup
from roost.model.host import Aggregate, HostFacts, HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.model.request import Destination, Move, Request, ResourceGroup
from roost.scheduler.plans.board import Resident
from tests.reference.room_plans import host_of, move_to
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.worlds import roost_on, settings_of

FILTERS = ["compute", "image_properties", "server_group_anti_affinity", "server_group_affinity", "num_instances"]
ZONES = ("east", "west")
POLICIES = ("anti-affinity", "affinity", "fault-domain", "soft-affinity")


def random_fleet(random):
    """Return a few hosts of one or two kinds, some with devices or NUMA nodes as child providers, in two zones."""
    count = random.choice((3, 4, 5))
    providers, hosts = [], []
    for name in [f"h{number}" for number in range(count)]:
        zone = random.choice(ZONES) if random.random() < 0.5 else "east"
        amounts = {"VCPU": random.choice((4, 6)), "MEMORY_MB": random.choice((6, 8))}
        has_nodes = random.random() < 0.2
        inventories = {each: Inventory(total=total) for each, total in amounts.items()}
        providers.append(
            ProviderSpec(
                uuid=uuid_named(name),
                name=name,
                aggregates=frozenset({uuid_named(zone)}),
                inventories={} if has_nodes else inventories,
            )
        )
        children = []
        if has_nodes:
            children += [(f"{name}-n{at}", {each: Inventory(total=3) for each in amounts}) for at in range(2)]
        if random.random() < 0.5:
            children.append((f"{name}-d", {"CUSTOM_DEVICE": Inventory(total=random.choice((1, 2)))}))
        providers += [
            ProviderSpec(uuid=uuid_named(each), name=each, parent_uuid=uuid_named(name), inventories=stocks)
            for each, stocks in children
        ]
        facts = HostFacts(rack=random.choice(("r1", "r2", "")))
        hosts.append(HostSpec(provider_uuid=uuid_named(name), host=name, node=name, facts=facts))
    aggregates = [Aggregate(uuid=uuid_named(zone), name=zone, metadata={"availability_zone": zone}) for zone in ZONES]
    groups = [ServerGroup(uuid=uuid_named(each), name=each, policy=each, max_server_per_host=1) for each in POLICIES]
    return Fleet(providers=providers, hosts=hosts, aggregates=aggregates, groups=groups)


def random_request(random, *, size_max):
    """Return a request for one instance, sometimes with a device, a zone or a group."""
    size = random.randint(1, size_max)
    memory_mb = size if random.random() < 0.7 else random.randint(1, size_max)
    return Request(
        flavor=Flavor(name="f", vcpus=size, memory_mb=memory_mb),
        groups=(ResourceGroup(suffix="_d", resources={"CUSTOM_DEVICE": 1}),) if random.random() < 0.2 else (),
        availability_zone=random.choice(ZONES) if random.random() < 0.2 else None,
        group=uuid_named(random.choice(POLICIES)) if random.random() < 0.25 else None,
        hints={"fault_domain": random.choice(("d1", "d2"))},
    )


def fill(random, roost):
    """Place up to 8 instances on random hosts; return their requests by uuid."""
    instances = {}
    names = list(roost.state.hosts.names)
    for _ in range(20):
        request = random_request(random, size_max=4)
        somewhere = replace(request, destination=Destination(host=random.choice(names)))
        (result,) = roost.outcomes([somewhere])
        if not isinstance(result, RoostError) and result.is_granted:
            instances[result.picks[0].instance_uuid] = request
        if len(instances) == 8:
            break
    return instances


def filled_fleet(seed):
    """Return random numbers, a fleet, and the requests of its instances by uuid."""
    random = Random(seed)
    options = {"max_instances_per_host": random.choice((3, 50))}
    roost = roost_on(settings=settings_of(enabled_filters=FILTERS, options=options))
    roost.install(random_fleet(random))
    return random, roost, fill(random, roost)


def residents_of(roost, instances):
    """Return the instances of a host that can move."""

    def residents(host):
        return [
            Resident(uuid, "", "live_migrate", replace(request, instance_uuids=(uuid,), move=Move(instance_uuid=uuid)))
            for uuid, request in instances.items()
            if host_of(roost, uuid) == host
        ]

    return residents


def carry_out(roost, instances, moves):
    """Return a fork after the moves of a plan, each by a real decision."""
    fork = roost.fork()
    for move in moves:
        assert host_of(fork, move.instance_uuid) == move.source
        moving, departure = move_to(instances[move.instance_uuid], move.instance_uuid, move.target)
        decision, _ = fork.work([moving, departure])
        assert decision.is_granted, decision.reason
        assert decision.picks[0].host == move.target
    return fork
