"""The audit of a database by its tables alone: plain SQL, without the code that wrote them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from roost.model.host import HostFacts
from roost.model.names import uuid_text
from roost.model.work.guest import HELD_GUEST, MISSING_GUEST
from roost.store.backends import database_at
from roost.store.database import Query
from roost.store.orphans import ORPHANS, Orphan, orphan_of

# The database computes sums and counts, so that a million allocations need no memory here.
# The identity of an inventory is provider * 65536 + class. A shift divides whole numbers on each database.


class Finding(msgspec.Struct, frozen=True):
    """A violated rule."""

    check: str
    subject: str
    problem: str


class Check(msgspec.Struct, frozen=True):
    """A query for violations, and the texts of its findings."""

    name: str
    query: str
    subject: str  # with the columns of a row as {0}, {1}, …
    problem: str


# Capacity and unit bounds of an inventory may shrink after a claim. The tables then have the same rows as after an
# overbooking, so the audit reports both.
_CHECKS = (
    Check(
        "used",
        """SELECT i.id >> 16, i.id % 65536, i.used, coalesce(a.held, 0) FROM inventory i
           LEFT JOIN (SELECT inventory_id, sum(amount) AS held FROM allocation GROUP BY inventory_id) a
           ON a.inventory_id = i.id WHERE i.id % 65536 <> 0 AND i.used <> coalesce(a.held, 0)""",
        "inventory of class {1} on provider {0}",
        "has {2} used, but its allocations sum to {3}",
    ),
    Check(
        "capacity",
        """SELECT id >> 16, id % 65536, used, (total - reserved) * allocation_ratio FROM inventory
           WHERE id % 65536 <> 0 AND used > (total - reserved) * allocation_ratio""",
        "inventory of class {1} on provider {0}",
        "{2} used of {3}: allowed if the inventory shrank afterwards",
    ),
    Check(
        "units",
        """SELECT i.id >> 16, i.id % 65536, a.consumer_id, a.amount, i.min_unit, i.max_unit, i.step_size
           FROM allocation a JOIN inventory i ON i.id = a.inventory_id
           WHERE a.amount < 1 OR a.amount < i.min_unit OR a.amount > i.max_unit OR a.amount % i.step_size <> 0""",
        "allocation of class {1} on provider {0} by consumer {2}",
        "{3} is not {4} to {5} in steps of {6}: allowed if these bounds changed afterwards",
    ),
    Check(
        "ownerless allocation",
        """SELECT a.consumer_id, a.inventory_id >> 16, a.inventory_id % 65536 FROM allocation a
           LEFT JOIN consumer c ON c.id = a.consumer_id WHERE c.id IS NULL""",
        "allocation of class {2} on provider {1}",
        "its consumer {0} does not exist",
    ),
    Check(
        "allocation of nothing",
        """SELECT a.consumer_id, a.inventory_id >> 16, a.inventory_id % 65536 FROM allocation a
           LEFT JOIN inventory i ON i.id = a.inventory_id WHERE i.id IS NULL OR i.id % 65536 = 0""",
        "allocation of consumer {0}",
        "there is no inventory of class {2} on provider {1}",
    ),
    Check(
        # With a remote Placement, instances have no allocations here.
        "empty consumer",
        """SELECT c.id FROM consumer c WHERE NOT EXISTS (SELECT 1 FROM allocation a WHERE a.consumer_id = c.id)
           AND (EXISTS (SELECT 1 FROM allocation)
                OR NOT EXISTS (SELECT 1 FROM instance i WHERE i.consumer_id = c.id))""",
        "consumer {0}",
        "has no allocations",
    ),
    Check(
        "doubled consumer",
        "SELECT count(*), min(id), max(id) FROM consumer GROUP BY uuid HAVING count(*) > 1",
        "consumers {1} and {2}",
        "{0} consumers have the same uuid",
    ),
    Check(
        "doubled allocation",
        """SELECT consumer_id, inventory_id >> 16, inventory_id % 65536, count(*) FROM allocation
           GROUP BY consumer_id, inventory_id HAVING count(*) > 1""",
        "allocation of class {2} on provider {1} by consumer {0}",
        "exists {3} times",
    ),
    Check(
        "ownerless instance",
        """SELECT i.consumer_id FROM instance i LEFT JOIN consumer c ON c.id = i.consumer_id WHERE c.id IS NULL""",
        "instance of consumer {0}",
        "its consumer does not exist",
    ),
    Check(
        "place",
        """SELECT p.group_id, p.scope, p.holder, p.members, coalesce(i.members, 0) FROM place p
           LEFT JOIN (SELECT group_id, scope, holder, count(*) AS members FROM instance WHERE group_id <> 0
                      GROUP BY group_id, scope, holder) i
           ON i.group_id = p.group_id AND i.scope = p.scope AND i.holder = p.holder
           WHERE p.members <> coalesce(i.members, 0)""",
        "group {0}, scope {1}, holder {2}",
        "has {3} members, but {4} instances",
    ),
    Check(
        "place",
        """SELECT i.group_id, i.scope, i.holder, count(*) FROM instance i JOIN server_group g ON g.id = i.group_id
           LEFT JOIN place p ON p.group_id = i.group_id AND p.scope = i.scope AND p.holder = i.holder
           WHERE p.group_id IS NULL AND g.policy IN ('affinity', 'anti-affinity', 'fault-domain')
           GROUP BY i.group_id, i.scope, i.holder""",
        "group {0}, scope {1}, holder {2}",
        "{3} instances without a place",
    ),
    Check(
        "missing group",
        """SELECT i.consumer_id, i.group_id FROM instance i LEFT JOIN server_group g ON g.id = i.group_id
           WHERE i.group_id <> 0 AND g.id IS NULL""",
        "instance of consumer {0}",
        "its server group {1} does not exist",
    ),
    Check(
        "group",
        """SELECT i.group_id, i.host_id, count(*), max(g.max_server_per_host) FROM instance i
           JOIN server_group g ON g.id = i.group_id WHERE g.policy = 'anti-affinity'
           GROUP BY i.group_id, i.host_id HAVING count(*) > max(g.max_server_per_host)""",
        "anti-affinity group {0}",
        "has {2} members on host {1}, {3} allowed",
    ),
    Check(
        "group",
        """SELECT i.group_id, count(DISTINCT i.host_id) FROM instance i JOIN server_group g ON g.id = i.group_id
           WHERE g.policy = 'affinity' GROUP BY i.group_id HAVING count(DISTINCT i.host_id) > 1""",
        "affinity group {0}",
        "is spread over {1} hosts",
    ),
    Check(
        "generation",
        """SELECT p.id, i.used FROM provider p LEFT JOIN inventory i ON i.id = p.id * 65536
           WHERE i.id IS NULL OR i.used <
               (CASE WHEN EXISTS (SELECT 1 FROM inventory o WHERE o.id > p.id * 65536
                                  AND o.id < (p.id + 1) * 65536) THEN 1 ELSE 0 END)
             + (CASE WHEN EXISTS (SELECT 1 FROM inventory o WHERE o.id > p.id * 65536
                                  AND o.id < (p.id + 1) * 65536 AND o.used > 0) THEN 1 ELSE 0 END)
             + (CASE WHEN EXISTS (SELECT 1 FROM provider_trait t WHERE t.provider_id = p.id) THEN 1 ELSE 0 END)""",
        "provider {0}",
        "its generation {1} is lower than the number of its changes",
    ),
    Check(
        "generation",
        "SELECT id, generation FROM consumer WHERE generation < 1",
        "consumer {0}",
        "its generation is {1}",
    ),
    Check(
        "tree",
        """SELECT p.id, p.root_id, p.parent_id, o.root_id FROM provider p LEFT JOIN provider o ON o.id = p.parent_id
           WHERE (p.parent_id IS NULL AND p.root_id <> p.id)
              OR (p.parent_id IS NOT NULL AND (o.id IS NULL OR o.root_id <> p.root_id))""",
        "provider {0}",
        "its root is {1}, but the root of its parent {2} is {3}",
    ),
    Check(
        "ownerless inventory",
        """SELECT i.id >> 16, i.id % 65536 FROM inventory i LEFT JOIN provider p ON p.id = i.id >> 16
           WHERE p.id IS NULL""",
        "inventory of class {1}",
        "its provider {0} does not exist",
    ),
    Check(
        "nameless class",
        """SELECT i.id >> 16, i.id % 65536 FROM inventory i LEFT JOIN symbol s ON s.id = i.id % 65536
           WHERE i.id % 65536 <> 0 AND (s.kind IS NULL OR s.kind <> 'resource_class')""",
        "inventory of class {1} on provider {0}",
        "its class has no name",
    ),
    Check(
        "nameless trait",
        """SELECT t.provider_id, t.trait_id FROM provider_trait t LEFT JOIN symbol s ON s.id = t.trait_id
           WHERE s.kind IS NULL OR s.kind <> 'trait'""",
        "trait {1} of provider {0}",
        "it has no name",
    ),
    Check(
        "nameless type",
        """SELECT c.id, c.type_id FROM consumer c LEFT JOIN symbol s ON s.id = c.type_id
           WHERE c.type_id <> 0 AND (s.kind IS NULL OR s.kind <> 'consumer_type')""",
        "consumer {0}",
        "its type {1} has no name",
    ),
    Check(
        "ownerless host",
        "SELECT h.id, h.provider_id FROM host h LEFT JOIN provider p ON p.id = h.provider_id WHERE p.id IS NULL",
        "host {0}",
        "its provider {1} does not exist",
    ),
    Check(
        "status",
        """SELECT s.id, s.status, s.host FROM instance_status s LEFT JOIN consumer c ON c.uuid = s.uuid
           WHERE s.host <> '' AND c.id IS NULL""",
        "instance {0}",
        "is {1} on {2}, but has no allocations",
    ),
    Check(
        # While an operation moves an instance, its status has the old host.
        "status",
        """SELECT s.id, s.host, s.node, h.host, h.node FROM instance_status s JOIN consumer c ON c.uuid = s.uuid
           JOIN instance i ON i.consumer_id = c.id JOIN host h ON h.id = i.host_id
           WHERE s.host <> '' AND s.operation_id = 0 AND (s.host <> h.host OR s.node <> h.node)""",
        "instance {0}",
        "is on {1} ({2}) by its status, and on {3} ({4}) by its allocations",
    ),
    Check(
        "operation",
        """SELECT s.id, s.operation_id FROM instance_status s
           LEFT JOIN operation o ON o.id = s.operation_id AND o.outcome = ''
           WHERE s.operation_id <> 0 AND o.id IS NULL""",
        "instance {0}",
        "waits for operation {1}, which has ended or does not exist",
    ),
    Check(
        # An operation with turn 0 is queued, and a deletion in its step ``sweep`` has released its instance.
        "operation",
        """SELECT o.id, o.kind FROM operation o
           LEFT JOIN instance_status s ON s.uuid = o.instance_uuid AND s.operation_id = o.id
           WHERE o.outcome = '' AND o.turn > 0 AND o.step <> 'sweep' AND s.id IS NULL""",
        "operation {0}",
        "is an open {1}, but no instance waits for it",
    ),
)


def audit(url_or_path: str | Path) -> list[Finding]:
    """Check a whole database, and return the violations.

    Raises:
        StoreBroken: it is not a database of Roost.
        StoreOutdated: its schema is older or newer than the program's.
        Unavailable: the server does not answer.
    """
    with _open(str(url_or_path)) as query:
        return list(_findings(query))


def orphans(url_or_path: str | Path) -> list[Orphan]:
    """Return the orphans: allocations of unknown consumers, or of instances and migrations of other hosts.

    Without any instance status, there are none.

    Raises:
        StoreBroken, StoreOutdated, Unavailable: as for ``audit``.
    """
    with _open(str(url_or_path)) as query:
        return [orphan_of(row) for row in query(ORPHANS)]


@contextmanager
def _open(url: str) -> Iterator[Query]:
    """Yield a function for queries of a database, all of one moment."""
    with database_at(url).audit_query() as query:
        yield query


def _findings(query: Query) -> Iterator[Finding]:
    for check in _CHECKS:
        for row in query(check.query):
            yield Finding(check.name, check.subject.format(*row), check.problem.format(*row))
    yield from _cycles(query)
    yield from _fault_domains(query)
    yield from _missing_guests(query)
    for orphan in map(orphan_of, query(ORPHANS)):
        yield Finding("orphan", f"consumer {orphan.consumer}", orphan.problem)


def _cycles(query: Query) -> Iterator[Finding]:
    """Find cycles of providers. All providers in a cycle may have the same root, so only a walk finds it."""
    parents: dict[int, int] = dict(query("SELECT id, parent_id FROM provider WHERE parent_id IS NOT NULL"))
    good: set[int] = set()
    for start in parents:
        path, at = set[int](), start
        while at in parents and at not in good and at not in path:
            path.add(at)
            at = parents[at]
        if at in path:
            yield Finding("tree", f"provider {at}", "is its own ancestor")
            return
        good |= path


def _missing_guests(query: Query) -> Iterator[Finding]:
    """Find instances whose guest is missing, or held by another host, by the faults that conductors stored."""
    # A deleted instance has no fault. SQLite has bytes in place of uuids.
    faults = f"""SELECT uuid, status, fault FROM instance_status
                 WHERE substr(fault, 1, {len(MISSING_GUEST)}) = '{MISSING_GUEST}'
                 OR substr(fault, 1, {len(HELD_GUEST)}) = '{HELD_GUEST}' ORDER BY id"""  # noqa: S608  # our texts
    for uuid, status, fault in query(faults):
        text = uuid_text(uuid if isinstance(uuid, bytes) else uuid.bytes)
        yield Finding("guest", f"instance {text}", f"is {status}, but {fault}")


def _fault_domains(query: Query) -> Iterator[Finding]:
    """Find racks with two domains of one fault-domain group; the facts of the hosts name their racks."""
    members = """SELECT i.group_id, i.host_id, i.holder, count(*) FROM instance i
                 JOIN server_group g ON g.id = i.group_id WHERE g.policy = 'fault-domain'
                 GROUP BY i.group_id, i.host_id, i.holder ORDER BY i.group_id"""
    racks: dict[int, str] = {}
    domains: dict[tuple[int, str], int] = {}
    for group_id, host_id, domain, _ in list(query(members)):
        if not racks:
            facts = msgspec.msgpack.Decoder(HostFacts)
            racks = {number: facts.decode(body).rack for number, body in query("SELECT id, facts FROM host")}
        rack = racks.get(host_id, "")
        if rack and domains.setdefault((group_id, rack), domain) != domain:
            yield Finding("group", f"fault-domain group {group_id}", f"has two domains in rack {rack}")
