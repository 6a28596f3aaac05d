"""Orphans are allocations of instances and migrations on hosts where they do not belong, and nothing else."""

from contextlib import closing

import msgspec
import pytest

from roost.model.names import uuid_text
from roost.model.work.work_rows import Put
from roost.model.writes import PutSymbol, PutTraits
from roost.store.audit import audit, orphans
from tests.contract.stores import VCPU, claim, commit, host, inventory, item, offer, provider, uuid_of
from tests.support.conductors.work_rows import migration, operation, status

ONE, TWO = uuid_of("consumer", 1), uuid_of("consumer", 2)
OWN, OTHER, CHILD, POOL, SHARED = 1, 2, 3, 4, 5
LENDS = PutSymbol("trait", 70_001, "MISC_SHARES_VIA_AGGREGATE")
FAST = PutSymbol("trait", 70_002, "CUSTOM_FAST")
OPEN = ["moving", "finished", "left", "reverting"]
OVER = ["confirmed", "reverted", "failed"]


def find_orphans(durable, *rows, claims, **names):
    """Return the orphans of a fleet: two hosts, a child and a sharing child of the second, and a pool.

    Args:
        names: host or node name of the second host.
    """
    other = provider(OTHER)
    providers = [provider(OWN), other, provider(CHILD, parent=other), provider(POOL), provider(SHARED, parent=other)]
    offers = [offer(number, cpu=8) for number in (OWN, OTHER, CHILD, POOL, SHARED)]
    traits = [PutTraits(number, 1, [LENDS.id]) for number in (POOL, SHARED)] + [PutTraits(CHILD, 1, [FAST.id])]
    second_host = msgspec.structs.replace(host(OTHER), **names)
    with closing(durable.open()) as store:
        known = item(VCPU, LENDS, FAST, *providers, *offers, *traits, host(OWN), second_host)
        assert commit(store, known, *map(item, claims), item(work=map(Put, rows))) == [""] * (2 + len(claims))
    found = orphans(durable.url)
    assert [(f"consumer {each.consumer}", each.problem) for each in found] == [
        (finding.subject, finding.problem) for finding in audit(durable.url) if finding.check == "orphan"
    ]
    return [(each.consumer, each.provider, each.holder) for each in found]


def instance_status(**changes):
    return status(1, **({"uuid": ONE, "status": "ACTIVE", "task": "", "host": "h1", "node": "p1"} | changes))


def move(state, *, source=OWN, target=OTHER, of=ONE, **changes):
    """Return a migration between two hosts."""
    return migration(
        1,
        instance_uuid=of,
        status=state,
        source_host=f"h{source}",
        source_node=f"p{source}",
        target_host=f"h{target}",
        target_node=f"p{target}",
        **changes,
    )


LEFTOVER = [
    ([instance_status()], OTHER),
    ([instance_status(status="SHUTOFF")], CHILD),
    *[([instance_status(), move(state)], OTHER) for state in OVER],
    *[([instance_status(), move(state, source=9, target=OWN)], CHILD) for state in OPEN],
    ([instance_status(), move("moving", of=TWO)], OTHER),
]
FINE = [
    ([instance_status()], POOL),
    ([instance_status()], SHARED),
    ([instance_status(operation_id=7), operation(7, kind="migrate", instance_uuid=ONE, turn=2)], OTHER),
    ([instance_status(task="migrating")], OTHER),
    ([instance_status(host="h9", node="p9")], OTHER),
    ([instance_status(host="h2", node="p2")], OTHER),
    *[([instance_status(), move(state)], OTHER) for state in OPEN],
    *[([instance_status(), move(state, source=OTHER, target=OWN)], CHILD) for state in OPEN],
]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("rows", "at"), LEFTOVER)
def test_allocation_left_on_another_host_is_an_orphan(durable, rows, at, is_known):
    held = claim(1, (inventory(OWN), 1), (inventory(at), 2), (inventory(POOL), 1), instance=is_known)
    found = find_orphans(durable, *rows, claims=[held])
    assert found == [(uuid_text(ONE), uuid_text(uuid_of("provider", at)), "instance")]


@pytest.mark.parametrize(("rows", "at"), FINE)
def test_shared_or_justified_allocation_is_not_an_orphan(durable, rows, at):
    assert find_orphans(durable, *rows, claims=[claim(1, (inventory(OWN), 1), (inventory(at), 2))]) == []


@pytest.mark.parametrize("state", OPEN)
@pytest.mark.parametrize(
    ("source", "target", "at", "is_found"),
    [
        (OWN, 9, OTHER, True),
        (OWN, 9, CHILD, True),
        (OWN, 9, SHARED, False),
        (OWN, OTHER, CHILD, False),
        (OTHER, 9, CHILD, False),
        (9, OWN, OTHER, False),
    ],
)
def test_migration_may_hold_only_resources_of_its_hosts(durable, state, source, target, at, is_found):
    open_migration = move(state, source=source, target=target, uuid=TWO)
    held = [claim(1, (inventory(OWN), 1)), claim(2, (inventory(at), 1), instance=False)]
    expected = [(uuid_text(TWO), uuid_text(uuid_of("provider", at)), "migration")]
    assert find_orphans(durable, instance_status(), open_migration, claims=held) == expected * is_found


@pytest.mark.parametrize("names", [{"host": "h1"}, {"node": "p1"}])
def test_allocation_on_a_namesake_node_or_service_is_an_orphan(durable, names):
    open_migration = move("moving", target=9, of=uuid_of("consumer", 3), uuid=ONE)
    held = [claim(each, (inventory(OWN), 1), (inventory(OTHER), 2), instance=False) for each in (1, 2)]
    at = uuid_text(uuid_of("provider", OTHER))
    found = find_orphans(durable, instance_status(uuid=TWO), open_migration, claims=held, **names)
    assert found == [(uuid_text(ONE), at, "migration"), (uuid_text(TWO), at, "instance")] == sorted(found)


@pytest.mark.parametrize(("kind", "found"), [("INSTANCE", 1), ("MIGRATION", 1), ("VOLUME", 0)])
def test_consumers_of_other_services_are_left_out(durable, kind, found):
    consumer_type = PutSymbol("consumer_type", 2**32 + 1, kind)
    with closing(durable.open()) as store:
        known = item(VCPU, consumer_type, provider(OWN), offer(OWN, cpu=8), host(OWN))
        held = claim(1, (inventory(OWN), 2), instance=False)
        consumer = msgspec.structs.replace(held.consumers[0], type_id=consumer_type.id)
        other = msgspec.structs.replace(held, consumers=[consumer])
        assert commit(store, known, item(other), item(work=[Put(instance_status(uuid=TWO))])) == [""] * 3
    assert len(orphans(durable.url)) == found
