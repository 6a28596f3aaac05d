"""The rows: what both servers are asked, over which world, and how many times as fast Roost is wanted to be."""

import itertools
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from bench.peers import servers, worlds
from bench.peers.asking import Asked, Client, difference, load
from bench.peers.worlds import TRAIT, World, uuid_of

_ASKED = 9  # questions to Roost for each to the reference, which takes longer
_FLAT = "/allocation_candidates?resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40"
_LABELLED = f"{_FLAT}&required={TRAIT}&member_of={uuid_of('aggregate-1')}"
_NESTED = "/allocation_candidates?resources=VCPU:4,MEMORY_MB:8192&resources1=VGPU:1"
_WIDE = "/allocation_candidates?" + "&".join(f"resources{at}=VGPU:1" for at in range(1, 9)) + "&group_policy=isolate"
_NEW_NESTED = "/allocation_candidates?resources=VCPU:4,MEMORY_MB:8192&resources_*=VGPU:1"
_NEW_WIDE = (
    "/allocation_candidates?" + "&".join(f"resources_{at}_*=VGPU:1" for at in range(1, 9)) + "&group_policy=isolate"
)
_numbers = itertools.count(1)
_OWNER = {"project_id": "bench", "user_id": "bench", "consumer_generation": None, "consumer_type": "INSTANCE"}


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How large the worlds are, and how often things are asked."""

    few: int = 1_000  # hosts
    many: int = 10_000
    alone: int = 100_000
    trees: int = 200
    creations: int = 1_000
    claims: int = 400  # of one client; several make twice as many
    consumers: int = 100
    repeats: int = 3


SMALL = Size(few=20, many=40, alone=80, trees=5, creations=16, claims=16, consumers=4, repeats=1)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in one row."""

    row: str
    theirs_ms: float | None  # None: Roost alone was asked
    ours_ms: float
    wanted: float  # how many times as fast Roost is to be; of Roost alone: milliseconds at most
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as fast Roost is."""
        return None if self.theirs_ms is None else self.theirs_ms / self.ours_ms

    @property
    def is_reached(self) -> bool:
        """Whether it is as fast as wanted."""
        return self.ours_ms <= self.wanted if self.ratio is None else self.ratio >= self.wanted


class Pair:
    """Both servers over one world."""

    def __init__(self, theirs: str, ours: str, world: World, *, repeats: int) -> None:
        self.addresses = theirs, ours
        self.clients = Client(theirs), Client(ours)
        # Of hosts, the second is in every answer; the first has no trait.
        hosts = [each.uuid for each in world if each.parent_uuid is None]
        self._disturbed = hosts[:2][-1] if hosts else ""
        self._repeats = repeats

    def read(self, row: str, path: str, *, wanted: float, everything: str | None = None) -> Line:
        """Compare the answers to a question, and measure them in turn; before each, somebody claims and gives back.

        Args:
            path: of the question; a ``*`` in it is another number each time, so that nobody was asked that before.
        """
        theirs, ours = self.clients
        whole = None if everything is None else ours.get(everything.replace("*", "0"))
        note = difference(*(client.get(path.replace("*", "0")) for client in self.clients), whole) or ""
        times = []
        for _ in range(self._repeats):
            # Both as often: generations are part of answers.
            for _ in range(_ASKED - 1):
                disturb(theirs, self._disturbed)
            times.append((self._time_ms(theirs, path), [self._time_ms(ours, path) for _ in range(_ASKED)]))
        return Line(
            row=row,
            theirs_ms=statistics.median(pair[0] for pair in times),
            ours_ms=statistics.median(statistics.median(pair[1]) for pair in times),
            wanted=wanted,
            note=note,
        )

    def _time_ms(self, client: Client, path: str) -> float:
        disturb(client, self._disturbed)
        return client.time_ms(path.replace("*", str(next(_numbers))))

    def write(self, row: str, requests: list[list[Asked]], *, clients: int, wanted: float, check: list[str]) -> Line:
        """Let clients send the same to both, and compare what is there afterwards; times are for one sequence."""
        theirs, ours = (load(address, requests, clients=clients) for address in self.addresses)
        notes = [f"{path}: {note}" for path in check if (note := self._difference(path))]
        if theirs.again or ours.again:
            notes.append(f"sent again: {theirs.again} and {ours.again}")
        return Line(
            row=row,
            theirs_ms=theirs.seconds / len(requests) * 1e3,
            ours_ms=ours.seconds / len(requests) * 1e3,
            wanted=wanted,
            note="; ".join(notes),
        )

    def _difference(self, path: str) -> str | None:
        theirs, ours = (client.get(path) for client in self.clients)
        return difference(theirs, ours, None)


def few(size: Size) -> Iterator[Line]:
    """Flat hosts."""
    yield from _flat(size, size.few, (50, 30, 20))


def many(size: Size) -> Iterator[Line]:
    """Ten times as many."""
    yield from _flat(size, size.many, (200, 60, 40))


def _flat(size: Size, hosts: int, wanted: tuple[float, float, float]) -> Iterator[Line]:
    with _both(size, worlds.flat(hosts)) as pair:
        name = f"candidates, {hosts:,} hosts"
        yield pair.read(f"{name}, limit 10", f"{_FLAT}&limit=10", wanted=wanted[0], everything=_FLAT)
        yield pair.read(f"{name}, limit 1,000", f"{_FLAT}&limit=1000", wanted=wanted[1], everything=_FLAT)
        yield pair.read(f"{name}, no limit", _FLAT, wanted=wanted[2])
        if hosts == size.few:
            yield pair.read(f"{name}, trait and member_of", _LABELLED, wanted=50)


def trees(size: Size) -> Iterator[Line]:
    """Trees of five."""
    with _both(size, worlds.nested(size.trees, children=4)) as pair:
        name = f"candidates, {size.trees:,} trees of five, two groups"
        yield pair.read(name, _NESTED, wanted=50)
        yield pair.read(f"{name}, never asked before", _NEW_NESTED, wanted=1)
        path = f"/resource_providers?in_tree={uuid_of('tree-0')}"
        yield pair.read("one provider tree", path, wanted=5)


def wide(size: Size) -> Iterator[Line]:
    """Eight devices for eight groups."""
    with _both(size, worlds.nested(1, children=8), is_wide=True) as pair:
        path = f"{_WIDE}&limit=1000"
        name = "candidates, eight groups on eight devices, 1,000"
        yield pair.read(name, path, wanted=1_000, everything=_WIDE)
        yield pair.read(f"{name}, never asked before", f"{_NEW_WIDE}&limit=1000", wanted=1, everything=_NEW_WIDE)


def writes(size: Size) -> Iterator[Line]:
    """Providers come to be, and are claimed on."""
    with _both(size, []) as pair:
        providers = [_creation(at) for at in range(size.creations)]
        yield pair.write(
            f"create {size.creations:,} providers with inventory and traits, 8 clients",
            providers,
            clients=8,
            wanted=15,
            check=["/resource_providers"],
        )
        check = [f"/resource_providers/{uuid_of(f'new-{at}')}/usages" for at in range(0, size.creations, 16)]
        for clients, count, wanted in ((1, size.claims, 10), (8, 2 * size.claims, 30)):
            claims = [[_claim(clients, at, size.creations)] for at in range(count)]
            name = f"PUT allocations, {clients} client{'s' if clients > 1 else ''}"
            yield pair.write(name, claims, clients=clients, wanted=wanted, check=check)


def reshapes(size: Size) -> Iterator[Line]:
    """Devices move to a child, with all who hold one."""
    with _both(size, []) as pair:
        names = [f"reshaped-{at}" for at in range(size.repeats)]
        for client in pair.clients:
            for name in names:
                for request in _to_reshape(name, size.consumers):
                    client.insist(request)
        yield pair.write(
            f"POST /reshaper, {size.consumers} consumers",
            [[_reshape(name, size.consumers)] for name in names],
            clients=1,
            wanted=20,
            check=[f"/resource_providers/{uuid_of(f'{name}-child')}/usages" for name in names],
        )


def alone(size: Size) -> Iterator[Line]:
    """So many hosts that only Roost is asked."""
    with tempfile.TemporaryDirectory(prefix="roost-peers-") as folder:
        world = worlds.flat(size.alone)
        with servers.ours(Path(folder) / "ours", world) as address:
            client, times = Client(address), []
            for _ in range(9 * size.repeats):
                disturb(client, world[0].uuid)
                times.append(client.time_ms(f"{_FLAT}&limit=1000"))
        name = f"candidates, {size.alone:,} hosts, limit 1,000, Roost alone, ms"
        yield Line(row=name, theirs_ms=None, ours_ms=statistics.median(times), wanted=20)


def disturb(client: Client, provider: str) -> None:
    """Claim on a provider and give back, so that nobody answers the next question as if nothing had happened."""
    path = f"/allocations/{uuid_of(f'passing-{next(_numbers)}')}"
    body = {"allocations": {provider: {"resources": {"VCPU": 1}}}, **_OWNER}
    for request in (Asked("PUT", path, body), Asked("DELETE", path)):
        client.insist(request)


PARTS: dict[str, Callable[[Size], Iterator[Line]]] = {
    "few": few,
    "many": many,
    "trees": trees,
    "wide": wide,
    "writes": writes,
    "reshapes": reshapes,
    "alone": alone,
}


@contextmanager
def _both(size: Size, world: World, *, is_wide: bool = False) -> Iterator[Pair]:
    """Serve both over a world, in folders that are gone at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="roost-peers-")))
        theirs = stack.enter_context(servers.theirs(folder / "theirs", world, is_wide=is_wide))
        ours = stack.enter_context(servers.ours(folder / "ours", world))
        yield Pair(theirs, ours, world, repeats=size.repeats)


def _creation(at: int) -> list[Asked]:
    number = uuid_of(f"new-{at}")
    stocks = {"VCPU": {"total": 64}, "MEMORY_MB": {"total": 262_144}, "DISK_GB": {"total": 2_000}}
    path = f"/resource_providers/{number}"
    return [
        Asked("POST", "/resource_providers", {"name": f"new-{at}", "uuid": number}),
        Asked("PUT", f"{path}/inventories", {"resource_provider_generation": 0, "inventories": stocks}),
        Asked("PUT", f"{path}/traits", {"resource_provider_generation": 1, "traits": [TRAIT, "COMPUTE_NODE"]}),
    ]


def _claim(clients: int, at: int, hosts: int) -> Asked:
    provider = uuid_of(f"new-{at % hosts}")
    body = {"allocations": {provider: {"resources": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 5}}}, **_OWNER}
    return Asked("PUT", f"/allocations/{uuid_of(f'claim-{clients}-{at}')}", body)


def _to_reshape(name: str, consumers: int) -> Iterator[Asked]:
    root, child = uuid_of(name), uuid_of(f"{name}-child")
    yield Asked("POST", "/resource_providers", {"name": name, "uuid": root})
    yield Asked("POST", "/resource_providers", {"name": f"{name}-child", "uuid": child, "parent_provider_uuid": root})
    stocks = {"VCPU": {"total": 1_000}, "VGPU": {"total": 1_000}}
    path = f"/resource_providers/{root}/inventories"
    yield Asked("PUT", path, {"resource_provider_generation": 0, "inventories": stocks})
    for at in range(consumers):
        body = {"allocations": {root: {"resources": {"VCPU": 1, "VGPU": 1}}}, **_OWNER}
        yield Asked("PUT", f"/allocations/{uuid_of(f'{name}-{at}')}", body)


def _reshape(name: str, consumers: int) -> Asked:
    root, child = uuid_of(name), uuid_of(f"{name}-child")
    moved = {root: {"resources": {"VCPU": 1}}, child: {"resources": {"VGPU": 1}}}
    owner = {**_OWNER, "consumer_generation": 1}
    body = {
        "inventories": {
            root: {"resource_provider_generation": 1 + consumers, "inventories": {"VCPU": {"total": 1_000}}},
            child: {"resource_provider_generation": 0, "inventories": {"VGPU": {"total": 1_000}}},
        },
        "allocations": {uuid_of(f"{name}-{at}"): {"allocations": moved, **owner} for at in range(consumers)},
    }
    return Asked("POST", "/reshaper", body, headers=(("x-roles", "service"),))
