"""A slow, obvious scheduler on plain dictionaries.

Candidates come from the slow search. For every instance it examines every host, in the order of registration.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from tests.reference.candidates import Forest, Group, Query, Result, Stock, candidates_at, root

Allocations = dict[tuple[str, str], int]  # provider and class -> amount


@dataclass(frozen=True)
class Host:
    """A host on a root provider."""

    name: str  # of the root provider, the node and the service
    cell: str = ""
    rack: str = ""
    num_io_ops: int = 0
    failed_builds: int = 0
    hypervisor_version: int = 0
    devices: int = 0
    is_down: bool = False


@dataclass(frozen=True)
class ServerGroup:
    """The policy and limit of a server group."""

    policy: str
    limit: int = 1


@dataclass
class World:
    """The state of a deployment."""

    forest: Forest
    hosts: list[Host]
    aggregates: dict[str, dict[str, str]]
    groups: dict[str, ServerGroup]
    instances: dict[str, "Instance"] = field(default_factory=dict)
    starting: Counter[str] = field(default_factory=Counter)  # instances of the current request, by host
    part: frozenset[str] | None = None  # names of the hosts of the deciding process; None: all


@dataclass(frozen=True)
class Instance:
    """An instance on a host."""

    host: str
    held: frozenset[tuple[str, str, int]]
    group: str | None
    domain: str
    distro: str = ""


@dataclass(frozen=True)
class Wish:
    """A request."""

    groups: tuple[Group, ...]  # resource groups; the flavor's group has no suffix
    policy: str = "none"
    distro: str = ""  # the only property of the image; empty without an image
    count: int = 1
    group: str | None = None
    domain: str = ""
    zones: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    forced: tuple[str, ...] = ()
    destination: str | None = None
    cell: str | None = None
    may_leave_cell: bool = False


@dataclass(frozen=True)
class Ranking:
    """The ranked hosts, best first, with totals, raw weights and stages."""

    hosts: list[Host]
    totals: list[float]
    raws: list[dict[str, float]]
    stages: list[tuple[str, int, int]]


# --- filters ---------------------------------------------------------------------------------------------------------


def query_of(world: World, wish: Wish) -> Query:
    """Return the Placement query of a request."""
    main, *others = wish.groups
    # The flavor's group omits the classes that other groups request.
    requested = {resource_class for group in others for resource_class in group.resources}
    main = replace(main, resources={name: amount for name, amount in main.resources.items() if name not in requested})
    if wish.zones:
        inside = frozenset(
            name for name, pairs in world.aggregates.items() if pairs.get("availability_zone") in wish.zones
        )
        main = replace(main, member_of=(*main.member_of, inside))
    targets = [wish.destination] if wish.destination else list(wish.forced)
    found = [host for host in world.hosts if host.name.lower() in {name.lower() for name in targets}]
    if len(found) == 1 and main.resources:
        main = replace(main, in_tree=found[0].name)
    return Query(groups=(main, *others), policy=wish.policy)


def candidates_of(world: World, wish: Wish, host: Host) -> set[Result]:
    """Return the candidates for one instance on a host."""
    return candidates_at(world.forest, query_of(world, wish), host.name)


def filter_hosts(world: World, wish: Wish, enabled: list[str]) -> tuple[list[Host], list[tuple[str, int, int]]]:
    """Return the accepted hosts, and the host counts before and after each stage."""
    left = list(world.hosts)
    stages = []
    rules = [("search", lambda host: bool(candidates_of(world, wish, host)))]
    if wish.ignored or wish.forced or wish.destination or (wish.cell and not wish.may_leave_cell):
        rules.append(("requested_hosts", lambda host: is_named(wish, host)))
    if "compute" in enabled and not wish.forced:
        rules.append(("compute", lambda host: not host.is_down))
    rules += group_rules(world, wish)
    if world.part is not None:
        rules.append(("own_hosts", lambda host: world.part is not None and host.name in world.part))
    for name, keeps in rules:
        kept = [host for host in left if keeps(host)]
        stages.append((name, len(left), len(kept)))
        left = kept
    return left, stages


def is_named(wish: Wish, host: Host) -> bool:
    """Return whether the request allows a host by its name and cell."""
    name = host.name.lower()
    if name in {each.lower() for each in wish.ignored}:
        return False
    if wish.forced and name not in {each.lower() for each in wish.forced}:
        return False
    if wish.destination and name != wish.destination.lower():
        return False
    return not wish.cell or wish.may_leave_cell or host.cell == wish.cell


def group_rules(world: World, wish: Wish):
    """Return the filter of the server group, if any."""
    if wish.group is None:
        return []
    group = world.groups[wish.group]
    members = [each for each in world.instances.values() if each.group == wish.group]
    on = {host.name: [each for each in members if each.host == host.name] for host in world.hosts}
    racks = {host.name: host.rack for host in world.hosts}
    if group.policy == "anti-affinity":
        return [("server_group_anti_affinity", lambda host: len(on[host.name]) < group.limit)]
    if group.policy == "affinity":
        return [("server_group_affinity", lambda host: not members or bool(on[host.name]))]
    if group.policy == "fault-domain":
        others = {racks[each.host] for each in members if each.domain != wish.domain}
        return [("fault_domain", lambda host: host.rack != "" and host.rack not in others)]
    return []


# --- weighers --------------------------------------------------------------------------------------------------------


def stocks_of(world: World, host: Host, resource_class: str) -> list[Stock]:
    """Return the inventories of a class in a host's tree."""
    nodes = [node for name, node in world.forest.items() if root(world.forest, name) == host.name]
    return [node.stocks[resource_class] for node in nodes if resource_class in node.stocks]


def free_amount(world: World, host: Host, resource_class: str) -> int:
    """Return the free amount of a class in a host's tree, without overcommit."""
    return sum(stock.total - stock.reserved - stock.used for stock in stocks_of(world, host, resource_class))


def free_vcpus(world: World, host: Host) -> float:
    """Return the free virtual CPUs of a host's tree by its largest allocation ratio; reserved ones count as free."""
    stocks = stocks_of(world, host, "VCPU")
    ratio = max((stock.ratio for stock in stocks), default=1.0)
    return sum(stock.total for stock in stocks) * ratio - sum(stock.used for stock in stocks)


def raw_weights(world: World, wish: Wish, host: Host) -> dict[str, float]:
    """Return the raw weight of each weigher for a host, in the order of summation."""
    here = [each for each in world.instances.values() if each.host == host.name]
    members = sum(each.group == wish.group for each in here) if wish.group else 0
    policy = world.groups[wish.group].policy if wish.group else ""
    crosses = wish.cell is not None and wish.may_leave_cell
    return {
        "build_failure": host.failed_builds,
        "cpu": free_vcpus(world, host),
        "cross_cell": (1 if host.cell == wish.cell else -1) if crosses else 0,
        "disk": free_amount(world, host, "DISK_GB") * 1024,
        "hypervisor_version": host.hypervisor_version,
        "image_properties": sum(each.distro == wish.distro != "" for each in here),
        "io_ops": host.num_io_ops + world.starting[host.name],
        "num_instances": len(here),
        "pci": 100 - min(host.devices, 99),
        "ram": free_amount(world, host, "MEMORY_MB"),
        "soft_affinity": members if policy == "soft-affinity" else 0,
        "soft_anti_affinity": -members if policy == "soft-anti-affinity" else 0,
    }


FROM_ZERO = ("cpu", "disk", "io_ops", "ram")
MULTIPLIERS = {
    "build_failure": 1000000.0,
    "cpu": 1.0,
    "cross_cell": 1000000.0,
    "disk": 1.0,
    "hypervisor_version": 1.0,
    "image_properties": 0.0,
    "io_ops": -1.0,
    "num_instances": 0.0,
    "pci": 1.0,
    "ram": 1.0,
    "soft_affinity": 1.0,
    "soft_anti_affinity": 1.0,
}


def option_of(weigher: str) -> str:
    """Return the name of a weigher's multiplier option, which is also its key in aggregate metadata."""
    odd = {"cross_cell": "cross_cell_move", "image_properties": "image_props"}
    return f"{odd.get(weigher, weigher)}_weight_multiplier"


def multiplier_of(world: World, host: Host, weigher: str, options: dict[str, float]) -> float:
    """Return the multiplier of a weigher for a host: the lowest of the host's aggregates, or the option."""
    option = options.get(option_of(weigher), MULTIPLIERS[weigher])
    if weigher == "image_properties" and option == 0:
        return 0.0
    texts = [
        world.aggregates[name][option_of(weigher)]
        for name in world.forest[host.name].aggregates
        if option_of(weigher) in world.aggregates[name]
    ]
    try:
        value = min([float(text) for text in texts], default=option)
    except ValueError:
        value = option
    return -value if weigher == "build_failure" else value


def rank(world: World, wish: Wish, enabled: list[str], options: dict[str, float]) -> Ranking:
    """Filter and weigh hosts for one instance."""
    hosts, stages = filter_hosts(world, wish, enabled)
    raws = [raw_weights(world, wish, host) for host in hosts]
    totals = [0.0] * len(hosts)
    if len(hosts) > 1:
        for weigher in MULTIPLIERS:
            values = [raw[weigher] for raw in raws]
            low = min(values)
            if weigher in FROM_ZERO:
                values = [max(value, 0) for value in values]
                low = 0
            high = max(values)
            for at, (host, value) in enumerate(zip(hosts, values, strict=True)):
                raws[at][weigher] = value
                scaled = 0.0 if high == low else (value - low) / (high - low)
                totals[at] += scaled * multiplier_of(world, host, weigher, options)
    order = sorted(range(len(hosts)), key=lambda at: -totals[at])
    return Ranking([hosts[at] for at in order], [totals[at] for at in order], [raws[at] for at in order], stages)


# --- claims and releases ---------------------------------------------------------------------------------------------


def take(world: World, uuid: str, instance: Instance) -> None:
    """Claim the resources of an instance."""
    world.instances[uuid] = instance
    use(world, instance, 1)


def release(world: World, uuid: str) -> None:
    """Release an instance, if it exists."""
    instance = world.instances.pop(uuid, None)
    if instance is not None:
        use(world, instance, -1)


def use(world: World, instance: Instance, sign: int) -> None:
    """Change the used amounts of all stocks of an instance's allocations."""
    for name, resource_class, amount in instance.held:
        node = world.forest[name]
        stock = node.stocks[resource_class]
        stocks = {**node.stocks, resource_class: replace(stock, used=stock.used + sign * amount)}
        world.forest[name] = replace(node, stocks=stocks)


def alternates(ranking: Ranking, chosen: list[Host], wanted: int) -> dict[str, list[str]]:
    """Return the next best hosts in the cell of each chosen host."""
    others = [host for host in ranking.hosts if host not in chosen]
    return {each.cell: [host.name for host in others if host.cell == each.cell][:wanted] for each in chosen}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a request."""

    first: Ranking  # for the first instance
    last: Ranking  # without any host, if the request is refused
    chosen: list[Host]
    held: list[frozenset[tuple[str, str, int]]]
    alternates: dict[str, list[str]]
    is_granted: bool


def decide(world: World, wish: Wish, *, enabled: list[str], options: dict[str, float], attempts: int, first) -> Outcome:
    """Choose a host for each instance in turn and claim there; either all succeed or none.

    Args:
        first: returns the amounts of the first candidate on a host.
    """
    chosen, held, alternates_of = [], [], {}
    before = dict(world.forest)
    rankings = []
    world.starting.clear()
    for number in range(wish.count):
        rankings.append(rank(world, wish, enabled, options))
        if not rankings[-1].hosts:
            for placed in range(number):
                del world.instances[f"new-{placed}"]
            world.forest = before
            return Outcome(rankings[0], rankings[-1], chosen, [], {}, is_granted=False)
        host = rankings[-1].hosts[0]
        amounts_held = first(world, wish, host)
        assert amounts_held in {taken for taken, _ in candidates_of(world, wish, host)}
        chosen.append(host)
        held.append(amounts_held)
        if wish.count == 1:
            alternates_of = alternates(rankings[0], chosen, attempts - 1)
        world.starting[host.name] += wish.count > 1
        take(world, f"new-{number}", Instance(host.name, amounts_held, wish.group, wish.domain, wish.distro))
    if wish.count > 1:
        alternates_of = alternates(rank(world, wish, enabled, options), chosen, attempts - 1)
    return Outcome(rankings[0], rankings[-1], chosen, held, alternates_of, is_granted=True)
